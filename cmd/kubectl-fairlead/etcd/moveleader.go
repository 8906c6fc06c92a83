package etcd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/operators/etcd/members"
)

func moveLeaderCommand(c *cli.CLI) *cobra.Command {
	var to string
	var dry cli.DryRun
	cmd := &cobra.Command{
		Use:   "move-leader CLUSTER",
		Short: "Hand over the leadership to another member",
		Long: "Hand over the leadership to another member: the one named by --to, or the one that is\nfurthest. " +
			"Clients notice a pause of less than a second. Before the node of the leader is\ndrained, for example.",
		Example:           "  kubectl fairlead etcd move-leader example\n  kubectl fairlead etcd move-leader example --to example-x7k2m",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteNames("etcdcluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := dry.Check(); err != nil {
				return err
			}
			e, err := reach(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return moveLeader(cmd.Context(), c, e, to, dry)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "The name of the member that is to lead (default the one that is furthest)")
	_ = cmd.RegisterFlagCompletionFunc("to", completeMembers(c))
	dry.AddTo(cmd)
	return cmd
}

func moveLeader(ctx context.Context, c *cli.CLI, e *cluster, to string, dry cli.DryRun) error {
	leader, err := e.leader()
	if err != nil {
		return err
	}
	var next member
	if to != "" {
		if next, err = e.named(to); err != nil {
			return err
		}
		switch {
		case next.problem != nil:
			return fmt.Errorf("member %s cannot lead: %w", next.name, next.problem)
		case next.IsLearner:
			return fmt.Errorf("member %s cannot lead: it is a learner", next.name)
		case next.isLeader():
			_, err := fmt.Fprintf(c.Out, "%s leads already\n", next.name)
			return err
		}
	} else {
		for _, m := range e.members {
			if m.canVote() && !m.isLeader() && (next.name == "" || m.Applied > next.Applied) {
				next = m
			}
		}
		if next.name == "" {
			return fmt.Errorf("etcdcluster/%s: no member but %s can lead", e.Name, leader.name)
		}
	}
	if dry.IsDry() {
		_, err := fmt.Fprintf(c.Out, "%s, the leader, %s\n", leader.name, dry.Done("hands over to "+next.name))
		return err
	}
	if err := e.ask.Send(ctx, members.Request{What: members.MoveLeader, At: leader.at, ID: next.ID}); err != nil {
		return fmt.Errorf("%s does not hand over to %s: %w", leader.name, next.name, err)
	}
	if err := e.again(ctx, &next, func() bool { return next.problem == nil && next.isLeader() }); err != nil {
		return fmt.Errorf("%s handed over to %s, which does not lead: %w", leader.name, next.name, err)
	}
	_, err = fmt.Fprintf(c.Out, "%s leads now, before it was %s\n", next.name, leader.name)
	return err
}
