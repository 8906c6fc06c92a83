// Package status has `kubectl fairlead status`: whether objects are well, and what there is to know of them.
package status

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

const statusLong = `Say whether what Fairlead keeps running is well, and if not, what it waits for.

Without a name it is a line for each object, those that are not Ready first. With a name it is a
screen about that object: also what is beside it, such as an etcdcluster's backups, certificates and
PodDisruptionBudget, and what its servers say. What you may not read of that is named, and left out.

A kind that cannot be listed, such as one that you may not list, is a line of its own that says
why; with -o it is on standard error. Kinds that the cluster does not have are left out.

The exit code is 0 if all are Ready, 2 if one is not, and 1 if that is unknown of some or of all.`

// status is `kubectl fairlead status`.
type status struct {
	*cli.CLI
	printing             *genericclioptions.PrintFlags
	allNamespaces, watch bool
}

// Command is `kubectl fairlead status`.
func Command(c *cli.CLI) *cobra.Command {
	o := &status{CLI: c, printing: genericclioptions.NewPrintFlags("").WithTypeSetter(cli.Scheme())}
	cmd := &cobra.Command{
		Use:   "status [KIND/NAME]",
		Short: "Say what is well, and what is not and why",
		Long:  statusLong,
		Example: "  kubectl fairlead status -A\n  kubectl fairlead status etcdcluster/example\n" +
			"  kubectl fairlead status memcached/cache --watch\n  kubectl fairlead status -A -o name",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeObjects(c),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Look at the objects of all namespaces")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Look again every two seconds, until Ctrl-C")
	o.AddPrinting(cmd, o.printing)
	c.AddTimeZone(cmd)
	return cmd
}

func (o *status) run(ctx context.Context, args []string) error {
	if o.watch && *o.printing.OutputFormat != "" {
		return errors.New("--watch draws a screen: leave out --output")
	}
	for hasSeen := false; ; hasSeen = true {
		var screen bytes.Buffer
		code, err := o.look(ctx, &screen, args)
		switch {
		case err != nil && hasSeen && ctx.Err() == nil: // the API server may be away for a while
			screen.Reset()
			_, _ = fmt.Fprintln(&screen, "error:", cli.Explain(err))
		case err != nil:
			return err
		}
		if o.watch && o.IsTerminal {
			o.Draw(screen.String())
		} else if _, err := screen.WriteTo(o.Out); err != nil {
			return err
		}
		if !o.watch {
			if code != 0 {
				return cli.ExitError(code)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// look writes a screen, and returns the exit code that says whether all is well.
func (o *status) look(ctx context.Context, screen io.Writer, args []string) (code int, err error) {
	now, err := o.Here()
	if err != nil {
		return 0, err
	}
	k, namespace, err := o.Client()
	if err != nil {
		return 0, err
	}
	if o.allNamespaces {
		namespace = ""
	}
	if len(args) == 0 {
		return o.overview(ctx, k, screen, namespace, now)
	}
	kind, name, err := cli.ObjectCalled(args[0])
	if err != nil {
		return 0, err
	}
	if namespace == "" {
		return 0, fmt.Errorf("%s: name one object, without -A", args[0])
	}
	one, err := kind.Get(ctx, k, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return 0, err
	}
	h := Of(kind, one)
	code = codeOf([]Health{h}, nil)
	if *o.printing.OutputFormat != "" {
		return code, o.print(screen, one)
	}
	beside, err := newBeside(o.CLI, k, now)
	if err != nil {
		return 0, err
	}
	return code, o.detail(screen, h, beside.of(ctx, one), now)
}

// overview is a line for each object, and one for each kind that could not be listed.
func (o *status) overview(ctx context.Context, k client.Client, screen io.Writer, namespace string, now time.Time) (code int, err error) {
	all, missing, err := list(ctx, k, namespace)
	if err != nil {
		return 0, err
	}
	sortByHealth(all)
	code = codeOf(all, missing)
	switch {
	case *o.printing.OutputFormat != "":
		for _, m := range missing {
			_, _ = fmt.Fprintf(o.ErrOut, "error: %s: %s\n", m.resource, m.why)
		}
		return code, o.printAll(screen, all)
	case len(all)+len(missing) == 0:
		_, err := io.WriteString(screen, nothing)
		return code, err
	}
	return code, o.table(screen, all, missing, now)
}

// completeObjects completes the one object that the command takes.
func completeObjects(c *cli.CLI) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.CompleteKinds(cmd, cli.Kinds(), nil, begun)
	}
}
