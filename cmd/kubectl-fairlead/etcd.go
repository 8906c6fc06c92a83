package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/operators/etcd/members"
)

func etcdCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "etcd",
		Aliases: []string{"etcdcluster"},
		Short:   "Work with EtcdClusters: backups, snapshots, their members",
	}
	cmd.AddCommand(etcdBackupCommand(c), etcdRestoreCommand(c), etcdSnapshotCommand(c),
		etcdDefragCommand(c), etcdMoveLeaderCommand(c), etcdReplaceCommand(c))
	return cmd
}

func etcdDefragCommand(c *cli) *cobra.Command {
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "defrag CLUSTER",
		Short: "Defragment the databases of a healthy cluster, one member after the other",
		Long: "Make the database file of each member as small as it can be, one member after the\nother, the leader last. " +
			"A member does not serve meanwhile, some 10 to 30 seconds for\neach GiB; the others do. It stops at the first member that does not serve again.\n\n" +
			"The operator does this by itself when a file is mostly empty.",
		Example:           "  kubectl fairlead etcd defrag example",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeNames("etcdcluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := c.reach(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return e.each(func() error { return e.lookAgain(cmd.Context()) }, func(m member) error {
				return c.defragment(cmd.Context(), e, m, patience)
			})
		},
	}
	cmd.Flags().DurationVar(&patience, "timeout", 10*time.Minute, "How long one member may take, such as 30m")
	return cmd
}

// each does something to each member, the leader last, as long as all of them serve, and the operator changes none.
func (e *etcd) each(lookAgain func() error, do func(member) error) error {
	slices.SortStableFunc(e.members, func(a, b member) int {
		return map[bool]int{true: 1}[a.isLeader()] - map[bool]int{true: 1}[b.isLeader()]
	})
	if err := errors.Join(e.quiet(), e.healthy()); err != nil {
		return fmt.Errorf("nothing was done: %w", err)
	}
	for i := range e.members {
		if err := do(e.members[i]); err != nil {
			return err
		}
		if i+1 == len(e.members) {
			break
		}
		if err := errors.Join(lookAgain(), e.quiet(), e.healthy()); err != nil {
			return fmt.Errorf("the members after %s were left alone: %w", e.members[i].name, err)
		}
	}
	return nil
}

// lookAgain reads the EtcdCluster again, and asks its members.
func (e *etcd) lookAgain(ctx context.Context) error {
	if err := e.k.Get(ctx, client.ObjectKeyFromObject(e.EtcdCluster), e.EtcdCluster); err != nil {
		return err
	}
	for i := range e.members {
		e.refresh(ctx, &e.members[i])
	}
	return nil
}

// defragment does it to one member, and waits until that serves again.
func (c *cli) defragment(ctx context.Context, e *etcd, m member, patience time.Duration) error {
	began, before := c.now(), m.DBSize
	err := e.ask.Do(ctx, m.at, patience, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := pb.NewMaintenanceClient(conn).Defragment(ctx, &pb.DefragmentRequest{})
		return err
	})
	if err != nil {
		return fmt.Errorf("member %s: %w; the members after it were left alone", m.name, err)
	}
	took := c.now().Sub(began).Round(time.Millisecond)
	if err := c.again(ctx, e, &m, func() bool { return m.problem == nil }); err != nil {
		return fmt.Errorf("member %s does not serve after it was defragmented: %w; the members after it were left alone", m.name, err)
	}
	role := ""
	if m.isLeader() {
		role = ", the leader"
	}
	_, err = fmt.Fprintf(c.Out, "%s%s: from %s to %s in %s\n", m.name, role, sizeText(float64(before)), sizeText(float64(m.DBSize)), took)
	return err
}

// again asks a member until it says what is expected, for as long as an election and a bit may take.
func (c *cli) again(ctx context.Context, e *etcd, m *member, isAsExpected func() bool) error {
	for range 60 {
		if e.refresh(ctx, m); isAsExpected() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
	return cmp.Or(m.problem, errors.New("not within 30 s"))
}

func etcdMoveLeaderCommand(c *cli) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "move-leader CLUSTER",
		Short: "Hand over the leadership to another member",
		Long: "Hand over the leadership to another member: the one named by --to, or the one that is\nfurthest. " +
			"Clients notice a pause of less than a second. Before the node of the leader is\ndrained, for example.",
		Example:           "  kubectl fairlead etcd move-leader example\n  kubectl fairlead etcd move-leader example --to example-x7k2m",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeNames("etcdcluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := c.reach(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.moveLeader(cmd.Context(), e, to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "The name of the member that is to lead (default the one that is furthest)")
	_ = cmd.RegisterFlagCompletionFunc("to", c.completeMembers)
	return cmd
}

func (c *cli) moveLeader(ctx context.Context, e *etcd, to string) error {
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
	if err := e.ask.Send(ctx, members.Request{What: members.MoveLeader, At: leader.at, ID: next.ID}); err != nil {
		return fmt.Errorf("%s does not hand over to %s: %w", leader.name, next.name, err)
	}
	if err := c.again(ctx, e, &next, func() bool { return next.problem == nil && next.isLeader() }); err != nil {
		return fmt.Errorf("%s handed over to %s, which does not lead: %w", leader.name, next.name, err)
	}
	_, err = fmt.Fprintf(c.Out, "%s leads now, before it was %s\n", next.name, leader.name)
	return err
}
