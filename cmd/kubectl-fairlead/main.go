// Command kubectl-fairlead is a plugin of kubectl. It goes by the name that it is
// called by: as kubectl-at it is `kubectl at` alone, and as kubectl_complete-at and
// kubectl_complete-fairlead it answers kubectl's completion.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/cmd/kubectl-fairlead/at"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/cmd/kubectl-fairlead/etcd"
	"example.com/fairlead/cmd/kubectl-fairlead/managers"
	"example.com/fairlead/cmd/kubectl-fairlead/memcached"
	"example.com/fairlead/cmd/kubectl-fairlead/object"
	"example.com/fairlead/cmd/kubectl-fairlead/pause"
	"example.com/fairlead/cmd/kubectl-fairlead/report"
	"example.com/fairlead/cmd/kubectl-fairlead/status"
	"example.com/fairlead/cmd/kubectl-fairlead/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	log.SetLogger(logr.Discard()) // or controller-runtime complains that there is none
	code := run(ctx, os.Args, cli.New(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	stop()
	os.Exit(code)
}

// run runs the command that the first argument names, and returns its exit code.
func run(ctx context.Context, args []string, c *cli.CLI) int {
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	name, completes := strings.CutPrefix(name, "kubectl_complete-")
	root := fairlead(c)
	if completes && name == "at" || name == "kubectl-at" {
		root = at.Command(c)
	}
	args = args[1:]
	if completes {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return c.Run(ctx, root, args)
}

// fairlead is `kubectl fairlead`.
func fairlead(c *cli.CLI) *cobra.Command {
	runAt := at.Command(c)
	runAt.Use = strings.Replace(runAt.Use, "kubectl-at", "at", 1)
	runAt.Annotations = nil
	return cli.Root(runAt, status.Command(c), pause.Command(c), pause.ResumeCommand(c), report.Command(c),
		web.Command(c), etcd.Command(c), memcached.Command(c), managers.VersionCommand(c), managers.CheckCommand(c),
		object.LogsCommand(c), object.TreeCommand(c))
}
