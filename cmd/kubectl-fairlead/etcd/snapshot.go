package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/operators/etcd/snapshot"
)

func snapshotCommand(c *cli.CLI) *cobra.Command {
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "snapshot CLUSTER FILE",
		Short: "Save a snapshot of the cluster to a file here",
		Long: "Save a snapshot of the cluster to a file on this machine. It is taken from a member that\nserves, and not from the leader if there is a choice. " +
			"The file gets its name only when all is\nthere and the hash that etcd puts at its end is right. A file that exists is not replaced.\n\n" +
			"The file has everything that is in etcd, also secrets: only you may read it.",
		Example: "  kubectl fairlead etcd snapshot example example.db",
		Args:    cobra.ExactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(given) == 1 {
				return nil, cobra.ShellCompDirectiveDefault // names of files
			}
			return c.CompleteNames("etcdcluster")(cmd, given, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Lstat(args[1]); err == nil {
				return fmt.Errorf("%s exists: name another file, or remove it first", args[1])
			}
			e, err := reach(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			from, err := e.toSave()
			if err != nil {
				return err
			}
			began := c.Now()
			size, sum, err := e.save(cmd.Context(), from, args[1], patience)
			if err != nil {
				return fmt.Errorf("the snapshot of member %s was not saved: %w", from.name, err)
			}
			_, err = fmt.Fprintf(c.Out, "%s: %s, revision %d or later, from %s, etcd %s, in %s\nSHA-256 of the database %x, as etcd has it\n", args[1],
				cli.Size(float64(size)), from.Revision, from.name, from.Version, c.Now().Sub(began).Round(time.Millisecond), sum)
			return err
		},
	}
	cmd.Flags().DurationVar(&patience, "timeout", time.Minute, "How long it may go on without a byte of progress")
	return cmd
}

// toSave is the member that a snapshot is taken from: one that serves, not the leader, the furthest.
func (e *cluster) toSave() (member, error) {
	candidates := slices.DeleteFunc(slices.Clone(e.members), func(m member) bool { return !m.canVote() })
	if len(candidates) == 0 {
		_, err := e.leader()
		return member{}, cmp.Or(err, fmt.Errorf("etcdcluster/%s: no member serves", e.Name))
	}
	leads := func(m member) int { return map[bool]int{true: 1}[m.isLeader()] }
	return slices.MinFunc(candidates, func(a, b member) int {
		return cmp.Or(leads(a)-leads(b), cmp.Compare(b.Applied, a.Applied))
	}), nil
}

// save writes a snapshot beside the file that it becomes. Nothing is left of one that is not whole.
func (e *cluster) save(ctx context.Context, from member, path string, patience time.Duration) (size int64, sum []byte, err error) {
	part, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".part-") // only its owner may read it
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	const forEver = 365 * 24 * time.Hour // what hangs is ended by the reader
	var reader *snapshot.Reader
	err = e.ask.Do(ctx, from.at, forEver, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		stream, err := pb.NewMaintenanceClient(conn).Snapshot(ctx, &pb.SnapshotRequest{})
		if err != nil {
			return err
		}
		reader = snapshot.NewReader(stream.Recv, cancel, patience)
		_, err = io.Copy(part, reader)
		return err
	})
	if reader != nil && reader.Err != nil {
		err = reader.Err
	}
	if err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err != nil {
		return 0, nil, err
	}
	if err = giveName(part.Name(), path); err != nil {
		return 0, nil, err
	}
	return reader.Size, reader.Sum(), nil
}

// giveName gives a file its name, and does not replace a file that has it since, where the file system
// has links.
func giveName(part, path string) error {
	err := os.Link(part, path)
	switch {
	case err == nil:
		return os.Remove(part)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	return os.Rename(part, path)
}
