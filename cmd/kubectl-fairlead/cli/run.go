package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ExitError is an error about which all is said, but for the code to exit with.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Root is `kubectl fairlead` with these commands.
func Root(commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "kubectl-fairlead",
		Short:       "Look at, and work with, what Fairlead's operators keep running",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl fairlead"},
	}
	cmd.AddCommand(commands...)
	return cmd
}

// Run runs a root command with these arguments, and returns its exit code.
func (c *CLI) Run(ctx context.Context, root *cobra.Command, args []string) int {
	c.prepare(root)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code ExitError
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
func (c *CLI) prepare(root *cobra.Command) {
	flags := root.PersistentFlags()
	c.Config.AddFlags(flags)
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
