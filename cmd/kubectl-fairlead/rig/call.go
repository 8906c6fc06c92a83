// Package rig is for the tests of the plugin: it runs a command, mostly against an API server, and says what came of it.
package rig

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// Command makes a command.
type Command func(*cli.CLI) *cobra.Command

// Below is `kubectl fairlead` with these commands only.
func Below(commands ...Command) Command {
	return func(c *cli.CLI) *cobra.Command {
		root := cli.Root()
		for _, command := range commands {
			root.AddCommand(command(c))
		}
		return root
	}
}

// Called is what came of a call of a command.
type Called struct {
	Code        int
	Out, ErrOut string
}

// Call runs a root command.
func Call(t *testing.T, root Command, now func() time.Time, stdin string, args ...string) Called {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")
	return call(t.Context(), root, now, stdin, args...)
}

func call(ctx context.Context, root Command, now func() time.Time, stdin string, args ...string) Called {
	var out, errOut bytes.Buffer
	c := cli.New(genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut})
	c.Now = now
	code := c.Run(ctx, root(c), args)
	return Called{code, out.String(), errOut.String()}
}
