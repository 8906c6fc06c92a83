// Package memcached has the commands of `kubectl fairlead memcached`. They ask the servers themselves, through their pods.
package memcached

import (
	"github.com/spf13/cobra"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// Command is `kubectl fairlead memcached`, with the commands below it.
func Command(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memcached",
		Short: "Work with Memcacheds: what a change would do, and a flush that is spread",
	}
	cmd.AddCommand(planCommand(c), flushCommand(c))
	return cmd
}
