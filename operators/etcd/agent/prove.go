package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/words"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/task"
)

const (
	// servePatience is at least how long the throw-away etcd may take until it serves.
	servePatience = 5 * time.Minute
	// compactPatience is for a compaction.
	compactPatience = 10 * time.Second
	askEvery        = 200 * time.Millisecond
)

// prove compares what the throw-away etcd serves with what was saved.
func (a *agent) prove(ctx context.Context, t task.Task) (*v1beta2.BackupProof, error) {
	began := a.now()
	have, err := fetched(t.Member)
	if err == nil && have == nil {
		err = &task.Problem{Reason: task.ReasonProofNotServed, Message: "The init container has made no data directory", Retriable: true}
	}
	if err != nil {
		return nil, err
	}
	at, _, err := endpointOf(t.Endpoints[0])
	if err != nil {
		return nil, err
	}
	c := members.DialDirect(nil, members.User{})
	defer func() { _ = c.Close() }() // nothing is under way
	serves, err := a.serves(ctx, c, at, max(t.Timeout, servePatience))
	if err != nil {
		return nil, err
	}
	object := words.Capitalized(t.Place.Of(have.Key))
	switch {
	case serves.ClusterID.String() != have.ClusterID:
		return nil, differs("%s: an etcd of cluster %s was started from it, and one of cluster %s serves", object, have.ClusterID, serves.ClusterID)
	case serves.Revision < have.Revision:
		return nil, differs("%s has revision %d, and an etcd that was started from it %d", object, have.Revision, serves.Revision)
	case have.Revision < t.Saved.Revision:
		return nil, differs("%s has revision %d, and the cluster had %d when it was saved", object, have.Revision, t.Saved.Revision)
	}
	if err := compare(ctx, c, at, object, t.Saved); err != nil {
		return nil, err
	}
	a.say("%s is proved: revision %d, hash %s", object, have.Revision, t.Saved.Hash)
	return &v1beta2.BackupProof{
		Key: have.Key, Revision: have.Revision, Time: metav1.Time{Time: a.now()},
		Duration: &metav1.Duration{Duration: a.now().Sub(began).Round(time.Millisecond)},
	}, nil
}

func differs(format string, args ...any) *task.Problem {
	return &task.Problem{Reason: task.ReasonProofDiffers, Message: fmt.Sprintf(format, args...) + ": do not rely on this backup"}
}

// serves waits until the etcd serves.
func (a *agent) serves(ctx context.Context, c members.Client, at members.Endpoint, patience time.Duration) (members.Status, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := c.Serves(waiting, at)
		if err == nil {
			var s members.Status
			if s, err = c.Status(waiting, at); err == nil {
				return s, nil
			}
		}
		select {
		case <-waiting.Done():
			return members.Status{}, &task.Problem{Reason: task.ReasonProofNotServed, Retriable: true, Message: fmt.Sprintf(
				"An etcd that was started from the backup did not serve within %s: %v", patience, err)}
		case <-time.After(askEvery):
		}
	}
}

// compare compares the hashes of all keys at the revision that was saved. What etcd itself changes
// later, because a lease has expired, is at later revisions. A hash is of what a compaction has left:
// if the cluster was compacted after the snapshot was begun, and before its hash was taken, so is the
// throw-away etcd.
func compare(ctx context.Context, c members.Direct, at members.Endpoint, object string, saved *v1beta2.StoredBackup) error {
	if saved.Hash == "" {
		return notComparable("%s: the cluster's hash was not to be had when it was saved", object)
	}
	deadline := time.Now().Add(compactPatience)
	for {
		var got *pb.HashKVResponse
		err := c.Do(ctx, at, hashPatience, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
			got, err = pb.NewMaintenanceClient(conn).HashKV(ctx, &pb.HashKVRequest{Revision: saved.Revision})
			return err
		})
		switch {
		case err == nil && got.GetCompactRevision() < saved.CompactRevision && time.Now().Before(deadline):
			if err := c.Send(ctx, members.Request{What: members.Compact, At: at, Revision: saved.CompactRevision, Patience: 2 * compactPatience}); err != nil && !errors.Is(err, members.ErrCompacted) {
				return notComparable("%s: an etcd that was started from it cannot be compacted to revision %d: %v", object, saved.CompactRevision, err)
			}
			time.Sleep(askEvery)
			continue
		case err != nil:
			return notComparable("%s: an etcd that was started from it gives no hash of revision %d: %v", object, saved.Revision, err)
		case got.GetCompactRevision() != saved.CompactRevision:
			return notComparable("%s: it is compacted up to revision %d, and the cluster was up to %d when its hash was taken", object, got.GetCompactRevision(), saved.CompactRevision)
		case hashText(got) != saved.Hash:
			return differs("%s has the hash %s at revision %d, and the cluster had %s", object, hashText(got), saved.Revision, saved.Hash)
		}
		return nil
	}
}

func notComparable(format string, args ...any) *task.Problem {
	return &task.Problem{Reason: task.ReasonProofNotComparable, Message: fmt.Sprintf(format, args...) + ". It can be read and served; the next one is compared again"}
}
