// Command fairlead runs one operator, or all of them:
//
//	fairlead [flags] at|etcd|memcached|webserver|all
//	fairlead version
//
// In pods that the etcd operator creates for backups, it is their agent:
//
//	fairlead etcd-agent <task>
package main

import (
	"os"
	_ "time/tzdata" // time zones, whatever the image has

	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators"
	"example.com/fairlead/operators/etcd/agent"
)

func main() {
	ctx := ctrl.SetupSignalHandler()
	if args := os.Args[1:]; len(args) > 0 && args[0] == agent.Command {
		os.Exit(agent.Main(ctx, args[1:]))
	}
	os.Exit(run.Main(ctx, os.Args[1:], operators.All))
}
