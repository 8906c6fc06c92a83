package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
)

// This file is about compactions and defragmentations: requests that may take minutes. No reconcile waits for them.
//
//	status names the member, and a deadline    nothing else is changed of the members until it is over
//	the request is made in the background      by the operator that has written that, within some seconds or not at all
//	its end is found by the next look          of that operator. Another one waits for the deadline, and then takes
//	                                           it for not done
//
// A member that is being defragmented does not serve, and is not asked for anything: it is busy, not down. If its
// etcd ends meanwhile, the defragmentation is over, and not done.

// errDefragmenting is the answer of a member that is not asked, because it is being defragmented.
var errDefragmenting = errors.New("it is being defragmented")

const (
	// beginsWithin is within what time after the decision the request is made, or not at all: by the deadline,
	// when another operator may go on, it is over.
	beginsWithin = 10 * time.Second
	// othersFirst is for how long maintenance that has failed leaves the members to everything else.
	othersFirst = 10 * time.Second
)

// maintenance is what an operator knows of the maintenance that it has decided on.
type maintenance struct {
	v1beta2.Maintenance
	isBegun, isOver bool
	// err is why one that is over was not done, or is not known to be, and at is when it was over.
	err error
	at  time.Time
}

// progress is how far the maintenance is that status has.
type progress int

const (
	toBegin progress = iota
	underWay
	done
	// notDone is one that is over, and was not done as far as is known.
	notDone
)

// progressOf is how far maintenance is that status has, by what this operator knows, and by the member's pod.
func (own maintenance) progressOf(claim v1beta2.Maintenance, pod *corev1.Pod, now time.Time) progress {
	isOwn := isSameMaintenance(own.Maintenance, claim)
	switch {
	case isOwn && own.isOver && own.err == nil:
		return done
	case isOwn && own.isBegun && !own.isOver:
		return underWay
	case isOwn && own.isOver && own.wasRefused():
		return notDone
	case isOwn && own.isOver && errors.Is(own.err, context.DeadlineExceeded) && !own.at.Before(claim.Deadline.Time):
		return done // the member had it, and time enough: it is done when it serves again
	case pod == nil:
		return notDone
	case isOwn && !own.isBegun && !objects.IsEnding(pod) && now.Before(claim.StartTime.Add(beginsWithin)):
		return toBegin
	case !now.Before(claim.Deadline.Time) || hasStartedSince(pod, claim.StartTime.Time):
		return notDone
	}
	return underWay
}

// wasRefused says that the member does not do it: after any other error it may be at it. A compaction can be
// requested again in any case.
func (own maintenance) wasRefused() bool {
	return errors.Is(own.err, members.ErrUnreachable) || errors.Is(own.err, members.ErrAuth) ||
		own.Type == v1beta2.MaintenanceCompaction && !errors.Is(own.err, context.DeadlineExceeded)
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
func (own maintenance) isDefragmenting(ec *v1beta2.EtcdCluster, pod *corev1.Pod, now time.Time) bool {
	claim := ec.Status.Maintenance
	if claim == nil || claim.Type != v1beta2.MaintenanceDefragmentation || claim.Member != pod.Name {
		return false
	}
	is := own.progressOf(*claim, pod, now)
	return is == toBegin || is == underWay
}

// awaitMaintenance makes the request for the maintenance that status has, and waits until it is over.
func (p *plan) awaitMaintenance(ec *v1beta2.EtcdCluster) bool {
	claim := p.memory.Maintenance
	if claim == nil {
		return false
	}
	m := p.view.of(claim.Member)
	is := p.view.maintenance.progressOf(*claim, m.pod, p.view.now)
	switch is {
	case toBegin:
		what := map[v1beta2.MaintenanceType]members.What{
			v1beta2.MaintenanceCompaction: members.Compact, v1beta2.MaintenanceDefragmentation: members.Defragment,
		}[claim.Type]
		p.ask(fmt.Sprintf("%s of member %s done", what, m.name), members.Request{
			What: what, At: objects.EndpointOf(ec, m.pod), Revision: claim.Revision, Patience: claim.Deadline.Sub(p.view.now),
		})
		p.soon()
	case underWay:
		p.later()
		if p.view.now.Before(claim.StartTime.Add(beginsWithin)) {
			p.soon() // most are short
		}
	case done, notDone:
		p.memory.Maintenance = nil
		p.claim("maintenance")
		p.soon()
		if is == done {
			p.noteMaintained(claim)
		}
		return false
	}
	if full := p.memory.FullDatabase; claim.Type == v1beta2.MaintenanceCompaction {
		p.report(status.Problem{Reason: reason.NoSpace, Retriable: true, Message: "The database is full, and takes no writes: its history is being dropped"})
	} else if full != nil && full.ResolvedTime == nil {
		p.report(status.Problem{Reason: reason.NoSpace, Retriable: true, Message: fmt.Sprintf("The database is full, and takes no writes: member %s is being defragmented", m.name)})
	}
	return true
}

// maintain decides on maintenance. The request for it is made once status has it.
func (p *plan) maintain(m *member, kind v1beta2.MaintenanceType, revision int64, patience time.Duration) {
	p.memory.Maintenance = &v1beta2.Maintenance{
		Type: kind, Member: m.name, Revision: revision, StartTime: *timeOf(p.view.now), Deadline: *timeOf(p.view.now.Add(patience)),
	}
	p.claim("maintenance")
	p.soon()
}

// defragment decides on the defragmentation of a member.
func (p *plan) defragment(m *member) {
	p.maintain(m, v1beta2.MaintenanceDefragmentation, 0, members.DefragmentPatience(m.answer.status.DBSize))
}

// hasFailedLately says whether maintenance has failed some seconds ago: everything else has its turn then.
func (p *plan) hasFailedLately() bool {
	again := p.view.maintenance.at.Add(othersFirst)
	if p.view.maintenance.err == nil || !p.view.now.Before(again) {
		return false
	}
	p.Wake(again)
	return true
}

// noteMaintained notes in status what was done.
func (p *plan) noteMaintained(claim *v1beta2.Maintenance) {
	full := p.memory.FullDatabase
	switch {
	case claim.Type == v1beta2.MaintenanceCompaction:
		p.memory.FullDatabase = &v1beta2.FullDatabase{CompactedRevision: claim.Revision}
	case full != nil:
		full.ResolvedTime = nil // its alarm is to be disarmed, if it has one
		if !slices.Contains(full.DefragmentedMembers, claim.Member) {
			full.DefragmentedMembers = append(full.DefragmentedMembers, claim.Member)
		}
	}
}

// noteDecided remembers maintenance that this operator has decided on: it is the one that makes the request.
func (a *asker) noteDecided(ec *v1beta2.EtcdCluster, decided *v1beta2.Maintenance) {
	if had := ec.Status.Maintenance; decided == nil || had != nil && isSameMaintenance(*had, *decided) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.maintenance[objects.Key(ec)] = &maintenance{Maintenance: *decided}
}

// decidedOn is the last maintenance that this operator has decided on.
func (a *asker) decidedOn(ec types.NamespacedName) maintenance {
	a.mu.Lock()
	defer a.mu.Unlock()
	if own := a.maintenance[ec]; own != nil {
		return *own
	}
	return maintenance{}
}

// begin makes a request in the background.
func (a *asker) begin(ctx context.Context, ec types.NamespacedName, r request) error {
	client := a.known(ec).client
	a.mu.Lock()
	own := a.maintenance[ec]
	mayBegin := own != nil && !own.isBegun && a.now().Before(own.StartTime.Add(beginsWithin))
	if mayBegin {
		own.isBegun = true
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
			log.FromContext(ctx).Info(r.why+": not known", "why", err.Error())
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		own.isOver, own.err, own.at = true, err, a.now()
	})
	return nil
}
