package object

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// TreeCommand is `kubectl fairlead tree`.
func TreeCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use:               "tree KIND NAME",
		Short:             "Show what an object owns, and what that owns",
		Example:           "  kubectl fairlead tree webserver site\n  kubectl fairlead tree etcdcluster/db",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.CompleteObject,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, object, k, err := c.Object(cmd.Context(), args)
			if err != nil {
				return err
			}
			owned, err := cli.OwnedBy(cmd.Context(), k, object, cli.Ownable())
			w := printers.GetNewTabWriter(c.Out)
			_, _ = fmt.Fprintf(w, "NAME\tAGE\n%s/%s\t%s\n", kind.Name(), object.GetName(), cli.Age(object.GetCreationTimestamp().Time, c.Now()))
			owned.Each(1, func(one *cli.Owned, depth int) {
				_, _ = fmt.Fprintf(w, "%s%s/%s\t%s\n", strings.Repeat("  ", depth), strings.ToLower(one.Kind), one.Name, cli.Age(one.CreationTimestamp.Time, c.Now()))
			})
			return errors.Join(w.Flush(), err)
		},
	}
}
