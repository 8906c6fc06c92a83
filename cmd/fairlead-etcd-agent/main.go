// Command fairlead-etcd-agent is the agent of the etcd operator, in the pods that it creates for backups and restores:
//
//	fairlead-etcd-agent <task as JSON>
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	// The image has no file but its programs: these are the CAs of the clouds.
	_ "golang.org/x/crypto/x509roots/fallback"

	"example.com/fairlead/operators/etcd/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := agent.Main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
