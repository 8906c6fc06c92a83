// Command kubectl-fairlead is a plugin of kubectl. It goes by the name that it is
// called by: as kubectl-at it is `kubectl at` alone, and as kubectl_complete-at and
// kubectl_complete-fairlead it answers kubectl's completion.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // time zones, whatever the machine has

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	log.SetLogger(logr.Discard()) // or controller-runtime complains that there is none
	code := run(ctx, os.Args, newCLI(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	stop()
	os.Exit(code)
}

// exitError is an error about which all is said, but for the code to exit with.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run runs the command that the first argument names, and returns its exit code.
func run(ctx context.Context, args []string, c *cli) int {
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	name, completes := strings.CutPrefix(name, "kubectl_complete-")
	root := fairleadCommand(c)
	if completes && name == "at" || name == "kubectl-at" {
		root = atCommand(c)
	}
	args = args[1:]
	if completes {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	prepare(root, c)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(c.ErrOut, "error: interrupted")
		return 130 // as a shell has it for Ctrl-C
	}
	_, _ = fmt.Fprintln(c.ErrOut, "error:", err)
	return 1
}

// prepare gives a root the flags of kubectl. Help shows those that people use.
func prepare(root *cobra.Command, c *cli) {
	flags := root.PersistentFlags()
	c.config.AddFlags(flags)
	hide(flags, "kubeconfig", "context", "namespace", "tz")
	_ = root.RegisterFlagCompletionFunc("namespace", c.completeNamespaces)
	_ = root.RegisterFlagCompletionFunc("context", c.completeContexts)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true // kubectl's is used
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.ErrOut)
}

// hide has help show these flags only.
func hide(flags *pflag.FlagSet, but ...string) {
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(but, f.Name) })
}

func fairleadCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "kubectl-fairlead",
		Short:       "Look at, and work with, what Fairlead's operators keep running",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl fairlead"},
	}
	at := atCommand(c)
	at.Use = strings.Replace(at.Use, "kubectl-at", "at", 1)
	at.Annotations = nil
	cmd.AddCommand(at, statusCommand(c), pauseCommand(c), resumeAnyCommand(c), reportCommand(c))
	cmd.AddCommand(webCommand(c), etcdCommand(c), memcachedCommand(c))
	return cmd
}

func newCLI(streams genericiooptions.IOStreams) *cli {
	out, isFile := streams.Out.(*os.File)
	return &cli{
		IOStreams:  streams,
		config:     genericclioptions.NewConfigFlags(true),
		now:        time.Now,
		isTerminal: isFile && term.IsTerminal(int(out.Fd())),
	}
}
