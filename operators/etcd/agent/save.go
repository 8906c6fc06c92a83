package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/snapshot"
	"example.com/fairlead/operators/etcd/store"
	"example.com/fairlead/operators/etcd/task"
)

const (
	// forEver is the patience for a snapshot: its reader has one of its own.
	forEver = 10 * 365 * 24 * time.Hour
	// hashPatience is for etcd to read its whole database.
	hashPatience = 2 * time.Minute
	// beginnings is how often a snapshot is begun, at most, until nothing was written meanwhile.
	beginnings = 5
	// leftoverAge is how old the parts of uploads that have died are when they are removed.
	leftoverAge = 24 * time.Hour
)

// save makes a backup.
func (a *agent) save(ctx context.Context, t task.Task) (*v1beta2.StoredBackup, error) {
	config, err := a.clientConfig(t)
	if err != nil {
		return nil, err
	}
	as, err := a.user(t)
	if err != nil {
		return nil, err
	}
	asked, err := a.ask(ctx, t.Endpoints, config, as)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, m := range asked {
			_ = m.client.Close() // nothing is under way
		}
	}()
	candidates, err := order(asked)
	if err != nil {
		return nil, err
	}
	to, err := a.open(ctx, t)
	if err != nil {
		return nil, err
	}
	defer func() { _ = to.Close() }() // what is stored is stored
	var failures []error
	for _, m := range candidates {
		s := &saving{agent: a, task: t, to: to, from: m}
		saved, err := s.save(ctx)
		if err == nil {
			a.say("Saved revision %d of %s, %d bytes, as %s", saved.Revision, m.url, saved.Size, saved.Key)
			if err := to.Tidy(ctx, t.Place.Key, a.now().Add(-leftoverAge)); err != nil {
				a.say("What earlier uploads have left is still there: %v", err)
			}
			return saved, nil
		}
		var failed *memberError
		if ctx.Err() != nil || !errors.As(err, &failed) {
			return nil, err
		}
		a.say("%s fails, and the next member is tried: %v", m.url, err)
		failures = append(failures, fmt.Errorf("%s: %w", m.url, err))
	}
	return nil, snapshotProblem(failures)
}

// memberError is one of a member: another one may do better.
type memberError struct{ error }

func (e *memberError) Unwrap() error { return e.error }

func snapshotProblem(failures []error) error {
	err := errors.Join(failures...)
	p := &task.Problem{Reason: task.ReasonSnapshotFailed, Retriable: true}
	switch {
	case errors.Is(err, members.ErrAuth):
		p.Reason, p.Message = task.ReasonEtcdRefuses, refusal
		return p
	case errors.Is(err, errNotServing):
		p.Reason = task.ReasonEtcdUnhealthy
	}
	p.Message = "No member has given a snapshot: "
	for i, failure := range failures {
		if i > 0 {
			p.Message += "; "
		}
		p.Message += failure.Error()
	}
	return p
}

// saving is a backup from one member.
type saving struct {
	agent *agent
	task  task.Task
	to    *store.Store
	from  member
}

var errNotServing = errors.New("it serves no linearizable read")

// save takes a snapshot from the member. Its errors are a [memberError], or those of the storage.
func (s *saving) save(ctx context.Context) (saved *v1beta2.StoredBackup, err error) {
	// What was acknowledged before is in the member's store after this.
	if err := s.from.client.Serves(ctx, s.from.at); err != nil {
		return nil, &memberError{fmt.Errorf("%w: %w", errNotServing, err)}
	}
	var ofStorage error
	err = s.from.client.Do(ctx, s.from.at, forEver, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		begun, err := s.begin(ctx, pb.NewMaintenanceClient(conn))
		if err != nil {
			return err
		}
		defer begun.end()
		saved, err = s.write(ctx, begun)
		if err != nil && begun.snapshot.Err == nil {
			ofStorage = err
		}
		return err
	})
	switch {
	case ofStorage != nil:
		return nil, ofStorage
	case err != nil:
		return nil, &memberError{err}
	}
	return saved, nil
}

// begun is a snapshot that has begun.
type begun struct {
	maintenance pb.MaintenanceClient
	snapshot    *snapshot.Reader
	end         context.CancelFunc
	// before and after are the member's status right before the snapshot was requested, and right
	// after its first bytes came: its revision is not smaller than the one, nor greater than the other.
	before, after *pb.StatusResponse
	// from and at are the times of the two.
	from, at time.Time
}

// begin begins a snapshot, if it can be while nothing is written.
func (s *saving) begin(ctx context.Context, maintenance pb.MaintenanceClient) (*begun, error) {
	for n := 1; ; n++ {
		b, err := s.beginOnce(ctx, maintenance)
		if err != nil {
			return nil, err
		}
		if n == beginnings || b.before.GetHeader().GetRevision() == b.after.GetHeader().GetRevision() {
			return b, nil
		}
		b.end()
	}
}

func (s *saving) beginOnce(ctx context.Context, maintenance pb.MaintenanceClient) (*begun, error) {
	b := &begun{maintenance: maintenance, from: s.agent.now()}
	var err error
	if b.before, err = statusOf(ctx, maintenance); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b.end = func() { cancel(nil) }
	stream, err := maintenance.Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		b.end()
		return nil, err
	}
	b.snapshot = snapshot.NewReader(stream.Recv, cancel, s.task.Timeout)
	if err := b.snapshot.Begin(); err != nil {
		b.end()
		return nil, err
	}
	if b.after, err = statusOf(ctx, maintenance); err == nil && b.after.GetHeader().GetMemberId() != b.before.GetHeader().GetMemberId() {
		err = errors.New("the endpoint leads to one member and then to another")
	}
	if err != nil {
		b.end()
		return nil, err
	}
	b.at = s.agent.now()
	return b, nil
}

func statusOf(ctx context.Context, maintenance pb.MaintenanceClient) (*pb.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, members.Patience)
	defer cancel()
	return maintenance.Status(ctx, &pb.StatusRequest{})
}

// write stores a snapshot that has begun.
func (s *saving) write(ctx context.Context, b *begun) (*v1beta2.StoredBackup, error) {
	revision, named := b.before.GetHeader().GetRevision(), b.after.GetHeader().GetRevision()
	cluster := members.ID(b.before.GetHeader().GetClusterId()).String()
	key := s.task.Place.Key
	if s.task.Periodic {
		key = store.KeyOf(key, named, b.at)
	}
	hash := s.hash(ctx, b.maintenance, revision)
	_, err := s.to.Write(ctx, key, store.Meta{
		Owner: s.task.Owner, Number: s.task.Number,
		Revision: named, Time: b.at, EtcdVersion: b.before.GetVersion(), ClusterID: cluster,
	}, b.snapshot)
	hashed := hash(err == nil)
	if err != nil {
		if b.snapshot.Err != nil {
			err = b.snapshot.Err
		}
		return nil, err
	}
	saved := &v1beta2.StoredBackup{
		Key: key, Revision: revision, Size: b.snapshot.Size, EtcdVersion: b.before.GetVersion(), ClusterID: cluster, Member: s.from.url,
		StartTime: &metav1.Time{Time: b.from}, Duration: &metav1.Duration{Duration: s.agent.now().Sub(b.from).Round(time.Millisecond)},
	}
	if hashed != nil {
		saved.Hash, saved.CompactRevision = hashText(hashed), hashed.GetCompactRevision()
	}
	return saved, nil
}

// hash asks for the hash of all keys while the snapshot is stored. The function that it returns waits
// for the answer; nil if there is none, or nobody wants it.
func (s *saving) hash(ctx context.Context, maintenance pb.MaintenanceClient, revision int64) (wait func(wanted bool) *pb.HashKVResponse) {
	if !s.task.Hash {
		return func(bool) *pb.HashKVResponse { return nil }
	}
	ctx, cancel := context.WithTimeout(ctx, hashPatience)
	answer := make(chan *pb.HashKVResponse, 1)
	go func() {
		got, err := maintenance.HashKV(ctx, &pb.HashKVRequest{Revision: revision})
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			s.agent.say("%s gives no hash of revision %d, so that the backup cannot be compared: %v", s.from.url, revision, err)
		}
		answer <- got // nil if there is an error
	}()
	return func(wanted bool) *pb.HashKVResponse {
		defer cancel()
		if !wanted {
			return nil
		}
		return <-answer
	}
}

func hashText(r *pb.HashKVResponse) string { return strconv.FormatUint(uint64(r.GetHash()), 16) }
