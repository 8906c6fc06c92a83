package at

import (
	"github.com/spf13/cobra"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// completeAts completes names of Ats, each once.
func completeAts(c *cli.CLI) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return c.CompleteEach(cmd, "at", "", given, begun)
	}
}
