// Package status has `kubectl fairlead status`: whether objects are well, and what there is to know of them.
package status

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

const statusLong = `Say whether what Fairlead keeps running is well, and if not, what it waits for.

Without a name it is a line for each object, of all kinds or of one, those that are not Ready first.
With a name it is a screen about that object: also what is beside it, such as an etcdcluster's
backups and certificates, and what its servers say. What you may not read is named, and left out.

A kind that cannot be listed, such as one that you may not list, is a line of its own that says
why. With -o json or yaml, each object has what is said of it as "verdict", and such a kind is on
standard error. Kinds that the cluster does not have are left out.

The exit code is 0 if all are Ready, 2 if one is not, and 1 if that is unknown of some or of all.`

// status is `kubectl fairlead status`.
type status struct {
	*cli.CLI
	printing             *genericclioptions.PrintFlags
	allNamespaces, watch bool
	selector             string
}

// Command is `kubectl fairlead status`.
func Command(c *cli.CLI) *cobra.Command {
	o := &status{CLI: c, printing: genericclioptions.NewPrintFlags("").WithTypeSetter(cli.Scheme())}
	cmd := &cobra.Command{
		Use:   "status [KIND [NAME] | KIND/NAME]",
		Short: "Say what is well, and what is not and why",
		Long:  statusLong,
		Example: "  kubectl fairlead status -A\n  kubectl fairlead status etcdcluster/example\n" +
			"  kubectl fairlead status memcached cache --watch\n  kubectl fairlead status webservers -A -l team=books -o yaml",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: c.CompleteObject,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Look at the objects of all namespaces")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Look again every two seconds, until Ctrl-C")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "Look at objects with these labels only, such as team=books")
	o.AddPrinting(cmd, o.printing, "wide")
	c.AddTimeZone(cmd)
	return cmd
}

// printsObjects says whether --output is for programs.
func (o *status) printsObjects() bool {
	return *o.printing.OutputFormat != "" && *o.printing.OutputFormat != "wide"
}

func (o *status) run(ctx context.Context, args []string) error {
	shown := ""
	for hasSeen := false; ; hasSeen = true {
		var screen bytes.Buffer
		code, err := o.look(ctx, &screen, args)
		switch {
		case err != nil && hasSeen && ctx.Err() == nil: // the API server may be away for a while
			screen.Reset()
			if err = cli.Explain(err); o.printsObjects() {
				_, _ = fmt.Fprintln(o.ErrOut, "error:", err)
			} else {
				_, _ = fmt.Fprintln(&screen, "error:", err)
			}
		case err != nil:
			return err
		}
		switch text := screen.String(); {
		case o.watch && o.printsObjects() && text == shown:
		case o.watch && !o.printsObjects() && o.IsTerminal:
			o.Draw(text)
		default:
			shown = text
			if _, err := screen.WriteTo(o.Out); err != nil {
				return err
			}
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
	kinds, name, err := meant(args)
	if err != nil {
		return 0, err
	}
	if name == "" {
		return o.overview(ctx, k, screen, kinds, namespace, now)
	}
	if namespace == "" || o.selector != "" {
		return 0, fmt.Errorf("%s: name one object, without -A and -l", strings.Join(args, " "))
	}
	kind := kinds[0]
	one, err := kind.Get(ctx, k, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return 0, err
	}
	h := Of(kind, one)
	code = codeOf([]Health{h}, nil)
	if o.printsObjects() {
		return code, o.print(screen, h.withVerdict())
	}
	beside, err := newBeside(o.CLI, k, now)
	if err != nil {
		return 0, err
	}
	return code, o.detail(screen, h, beside.of(ctx, one), now)
}

// meant are the kinds that the arguments mean, and the name of an object, if there is one.
func meant(args []string) (kinds []cli.Kind, name string, err error) {
	if len(args) == 0 {
		return cli.Kinds(), "", nil
	}
	if len(args) == 1 && !strings.Contains(args[0], "/") {
		kind, err := cli.KindCalled(args[0])
		return []cli.Kind{kind}, "", err
	}
	kind, name, err := cli.ObjectCalled(strings.Join(args, "/"))
	return []cli.Kind{kind}, name, err
}

// overview is a line for each object, and one for each kind that could not be listed.
func (o *status) overview(ctx context.Context, k client.Client, screen io.Writer, kinds []cli.Kind, namespace string, now time.Time) (code int, err error) {
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return 0, fmt.Errorf("--selector=%s: %w", o.selector, err)
	}
	all, missing, err := list(ctx, o.CLI, k, kinds, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return 0, err
	}
	sortByHealth(all)
	code = codeOf(all, missing)
	switch {
	case o.printsObjects():
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
