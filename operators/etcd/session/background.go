package session

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
)

// ErrDefragmenting is the answer of a member that is not asked, because it is being defragmented.
var ErrDefragmenting = errors.New("it is being defragmented")

// BeginsWithin is within what time after the decision the request is made, or not at all: by the deadline,
// when another operator may go on, it is over.
const BeginsWithin = 10 * time.Second

// Maintenance is what an operator knows of the maintenance that it has decided on.
type Maintenance struct {
	v1beta2.Maintenance
	IsBegun, IsOver bool
	// Err is why one that is over was not done, or is not known to be, and at is when it was over.
	Err error
	At  time.Time
}

// progress is how far the maintenance is that status has.
type progress int

// It was not requested yet, it is under way, it was done, or it is over and was not done, as far as is known.
const (
	ToBegin progress = iota
	UnderWay
	Done
	// NotDone is one that is over, and was not done as far as is known.
	NotDone
)

// ProgressOf is how far maintenance is that status has, by what this operator knows, and by the member's pod.
func (own Maintenance) ProgressOf(claim v1beta2.Maintenance, pod *corev1.Pod, now time.Time) progress {
	isOwn := isSameMaintenance(own.Maintenance, claim)
	switch {
	case isOwn && own.IsOver && own.Err == nil:
		return Done
	case isOwn && own.IsBegun && !own.IsOver:
		return UnderWay
	case isOwn && own.IsOver && own.wasRefused():
		return NotDone
	case isOwn && own.IsOver && errors.Is(own.Err, context.DeadlineExceeded) && !own.At.Before(claim.Deadline.Time):
		return Done // the member had it, and time enough: it is done when it serves again
	case pod == nil:
		return NotDone
	case isOwn && !own.IsBegun && !objects.IsEnding(pod) && now.Before(claim.StartTime.Add(BeginsWithin)):
		return ToBegin
	case !now.Before(claim.Deadline.Time) || hasStartedSince(pod, claim.StartTime.Time):
		return NotDone
	}
	return UnderWay
}

// wasRefused says that the member does not do it: after any other error it may be at it. A compaction can be
// requested again in any case.
func (own Maintenance) wasRefused() bool {
	return errors.Is(own.Err, members.ErrUnreachable) || errors.Is(own.Err, members.ErrAuth) ||
		own.Type == v1beta2.MaintenanceCompaction && !errors.Is(own.Err, context.DeadlineExceeded)
}

func isSameMaintenance(a, b v1beta2.Maintenance) bool {
	return a.Type == b.Type && a.Member == b.Member && a.StartTime.Equal(&b.StartTime)
}

// hasStartedSince says whether the etcd of a pod does not run, or has started since then.
func hasStartedSince(pod *corev1.Pod, then time.Time) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == objects.ContainerName {
			return c.State.Running == nil || c.State.Running.StartedAt.After(then)
		}
	}
	return pod.CreationTimestamp.After(then)
}

// isDefragmenting says whether a member is being defragmented, or is about to be.
func (own Maintenance) isDefragmenting(ec *v1beta2.EtcdCluster, pod *corev1.Pod, now time.Time) bool {
	claim := ec.Status.Maintenance
	if claim == nil || claim.Type != v1beta2.MaintenanceDefragmentation || claim.Member != pod.Name {
		return false
	}
	is := own.ProgressOf(*claim, pod, now)
	return is == ToBegin || is == UnderWay
}

// NoteDecided remembers what a cluster waits for, and maintenance that this operator has decided on: it is the one
// that makes the request.
func (a *Asker) NoteDecided(ec *v1beta2.EtcdCluster, is Waiting, decided *v1beta2.Maintenance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.last[objects.Key(ec)]
	last.Waiting = is
	a.last[objects.Key(ec)] = last
	if had := ec.Status.Maintenance; decided != nil && (had == nil || !isSameMaintenance(*had, *decided)) {
		a.maintenance[objects.Key(ec)] = &Maintenance{Maintenance: *decided}
	}
}

// noteRewritten remembers what was written about a voter. Another operator does it again, which changes nothing.
func (a *Asker) noteRewritten(ec types.NamespacedName, voter members.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.last[ec]
	last.Rewritten = append(slices.Clip(last.Rewritten), voter)
	a.last[ec] = last
}

// decidedOn is the last maintenance that this operator has decided on.
func (a *Asker) decidedOn(ec types.NamespacedName) Maintenance {
	a.mu.Lock()
	defer a.mu.Unlock()
	if own := a.maintenance[ec]; own != nil {
		return *own
	}
	return Maintenance{}
}

// begin makes a request in the background.
func (a *Asker) begin(ctx context.Context, ec types.NamespacedName, r Request) error {
	client := a.clientFor(ec, false)
	a.mu.Lock()
	own := a.maintenance[ec]
	mayBegin := own != nil && !own.IsBegun && a.now().Before(own.StartTime.Add(BeginsWithin))
	if mayBegin {
		own.IsBegun = true
	}
	a.mu.Unlock()
	if !mayBegin {
		return loop.ErrNotNow
	}
	outside.Go(ctx, func(ctx context.Context) {
		err := client.Send(ctx, r.Request)
		if errors.Is(err, members.ErrCompacted) {
			err = nil
		}
		if err == nil {
			r.note(ctx)
		} else {
			log.FromContext(ctx).Info("it is not known whether etcd has done what was requested", "for", r.Why, "why", err.Error())
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		own.IsOver, own.Err, own.At = true, err, a.now()
	})
	return nil
}
