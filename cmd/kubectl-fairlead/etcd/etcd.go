// Package etcd has the commands of `kubectl fairlead etcd`. They ask the members themselves, through their pods.
package etcd

import (
	"github.com/spf13/cobra"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// Command is `kubectl fairlead etcd`, with the commands below it.
func Command(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "etcd",
		Aliases: []string{"etcdcluster"},
		Short:   "Work with EtcdClusters: backups, snapshots, their members",
	}
	cmd.AddCommand(backupCommand(c), restoreCommand(c), snapshotCommand(c),
		defragCommand(c), moveLeaderCommand(c), replaceCommand(c))
	return cmd
}
