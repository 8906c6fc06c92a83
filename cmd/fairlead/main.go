// Command fairlead runs one operator, or all of them:
//
//	fairlead [flags] at|etcd|memcached|webserver|all
//	fairlead version
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	_ "time/tzdata" // time zones, whatever the image has

	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/fairlead/internal/kit/authn"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators"
	"example.com/fairlead/operators/etcd/task"
)

// agentCommand is how the agent of the etcd operator was run while it was a part of this program. The init container of
// a restored member runs again whenever its pod starts again, by then perhaps with another image of the same tag.
const agentCommand = "etcd-agent"

func main() {
	if args := os.Args[1:]; len(args) > 0 && args[0] == agentCommand {
		fmt.Fprintln(os.Stderr, becomeAgent(args[1:]))
		os.Exit(1)
	}
	os.Exit(run.Main(ctrl.SetupSignalHandler(), os.Args[1:], operators.All, run.Options{MetricsFilter: authn.Filter}))
}

// becomeAgent runs the agent, which is beside this program, in place of it. It returns only if that fails.
func becomeAgent(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	agent := filepath.Join(filepath.Dir(self), filepath.Base(task.Program))
	return fmt.Errorf("run %s: %w", agent, syscall.Exec(agent, append([]string{agent}, args...), os.Environ()))
}
