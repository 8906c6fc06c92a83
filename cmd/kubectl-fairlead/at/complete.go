package at

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// completeAts completes names of Ats, each once. That what is returned begins as
// what is typed is left to it, by some shells.
func completeAts(c *cli.CLI) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, stop := cli.Patience(cmd)
		defer stop()
		k, namespace, err := c.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ats atv1alpha1.AtList
		if err := k.List(ctx, &ats, client.InNamespace(namespace)); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for i := range ats.Items {
			if at := &ats.Items[i]; strings.HasPrefix(at.Name, begun) && !slices.Contains(given, at.Name) {
				names = append(names, cobra.CompletionWithDesc(at.Name, string(at.Status.Phase)+" "+at.Spec.Schedule))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
