package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

func defragCommand(c *cli.CLI) *cobra.Command {
	var patience time.Duration
	var dry cli.DryRun
	cmd := &cobra.Command{
		Use:   "defrag CLUSTER",
		Short: "Defragment the databases of a healthy cluster, one member after the other",
		Long: "Make the database file of each member as small as it can be, one member after the\nother, the leader last. " +
			"A member does not serve meanwhile, some 10 to 30 seconds for\neach GiB; the others do. It stops at the first member that does not serve again.\n\n" +
			"The operator does this by itself when a file is mostly empty.",
		Example:           "  kubectl fairlead etcd defrag example",
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
			return e.each(func() error { return e.lookAgain(cmd.Context()) }, func(m member) error {
				if dry.IsDry() {
					_, err := fmt.Fprintf(c.Out, "%s: %s, %s\n", m.name, cli.Size(float64(m.DBSize)), dry.Done("defragmented"))
					return err
				}
				return defragment(cmd.Context(), c, e, m, patience)
			})
		},
	}
	cmd.Flags().DurationVar(&patience, "timeout", 10*time.Minute, "How long one member may take, such as 30m")
	dry.AddTo(cmd)
	return cmd
}

// each does something to each member, the leader last, as long as all of them serve, and the operator changes none.
func (e *cluster) each(lookAgain func() error, do func(member) error) error {
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
func (e *cluster) lookAgain(ctx context.Context) error {
	if err := e.k.Get(ctx, client.ObjectKeyFromObject(e.EtcdCluster), e.EtcdCluster); err != nil {
		return err
	}
	for i := range e.members {
		e.refresh(ctx, &e.members[i])
	}
	return nil
}

// defragment does it to one member, and waits until that serves again.
func defragment(ctx context.Context, c *cli.CLI, e *cluster, m member, patience time.Duration) error {
	began, before := c.Now(), m.DBSize
	err := e.ask.Do(ctx, m.at, patience, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := pb.NewMaintenanceClient(conn).Defragment(ctx, &pb.DefragmentRequest{})
		return err
	})
	if err != nil {
		return fmt.Errorf("member %s: %w; the members after it were left alone", m.name, err)
	}
	took := c.Now().Sub(began).Round(time.Millisecond)
	if err := e.again(ctx, &m, func() bool { return m.problem == nil }); err != nil {
		return fmt.Errorf("member %s does not serve after it was defragmented: %w; the members after it were left alone", m.name, err)
	}
	role := map[bool]string{true: ", the leader"}[m.isLeader()]
	_, err = fmt.Fprintf(c.Out, "%s%s: from %s to %s in %s\n", m.name, role, cli.Size(float64(before)), cli.Size(float64(m.DBSize)), took)
	return err
}
