package cluster

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/versions"
	"example.com/fairlead/operators/etcd/view"
)

// plan is what to do now, and what status reports of it.
type plan struct {
	loop.Plan
	// request is what a member is asked for after the writes; nil for nothing.
	request *session.Request
	view    view.View
	// again is how soon to look again although no event comes, unless the same has been waited for for long: then
	// it is as waiting says.
	again   time.Duration
	waiting session.Waiting
	// memory is what later steps depend on, and status after the step. It is stored before anything is done that
	// depends on it.
	memory v1beta2.EtcdClusterStatus
	// problem is what keeps the cluster from being as requested, the first that was found.
	problem *status.Problem
	// activity is what is under way: the type of a condition and, in words, what.
	activity, doing string
	// underWay reports the restore that is under way, and only is the one member of a cluster that has
	// just been restored.
	underWay *status.Problem
	only     *v1beta2.MemberStatus
	// target is the version that members are being changed to; empty if none.
	target string
}

// steps are those of the package comment. The first that returns true is the last that is taken.
var steps = []func(*plan, *v1beta2.EtcdCluster) bool{
	(*plan).startStopped,
	(*plan).settleExisting,
	(*plan).restoreBackup,
	(*plan).form,
	(*plan).recoverQuorum,
	(*plan).restore,
	(*plan).removeStrays,
	(*plan).awaitMaintenance,
	(*plan).awaitQuorum,
	(*plan).makeSpace,
	(*plan).settleLearner,
	(*plan).removeLost,
	(*plan).disarmOld,
	(*plan).removeSurplus,
	(*plan).addMissing,
	(*plan).rollOut,
	(*plan).keepUp,
}

// decide is the next step. At most one thing is changed of the members at a time.
func decide(ec *v1beta2.EtcdCluster, seen view.Observation) *plan {
	next := &plan{view: view.Of(ec, seen), memory: *ec.Status.DeepCopy()}
	if ec.Spec.Paused {
		next.Wake(seen.Now.Add(restingWake))
		return next
	}
	var err error
	if next.view.Wanted, err = versions.Parse(ec.Spec.Version); err != nil {
		next.stall(reason.InvalidVersion, "spec.version: %v", err)
		return next
	}
	next.children(ec)
	next.remark(ec)
	switch {
	case seen.Taken == nil:
		for _, step := range steps {
			if step(next, ec) {
				break
			}
		}
	case ec.Spec.AdoptExisting && isOrphan(ec, seen.Taken): // a late cache hid it when the others were taken in
		next.adopt(ec, seen.Taken)
	default:
		next.stall(apply.ReasonConflict, "%s %q has the name of a member, and is not owned by this EtcdCluster: delete or rename it", loop.KindOf(seen.Taken), seen.Taken.GetName())
	}
	if next.view.Find(func(m *view.Member) bool { return m.MayFollow }) != nil {
		next.later()
	}
	next.pace(seen.Waiting)
	return next
}

// children are the objects beside the members.
func (p *plan) children(ec *v1beta2.EtcdCluster) {
	p.Do(loop.Apply{Object: p.view.Peers, Want: objects.PeerService(ec)}, loop.Apply{Object: p.view.Clients, Want: objects.ClientService(ec)})
	switch b := p.view.Budget(); {
	case objects.HasBudget(ec):
		p.Do(loop.Apply{Object: b, Want: objects.DisruptionBudget(ec, p.view.Budgeted(ec))})
	case objects.IsOwned(ec, b) && !objects.IsEnding(b):
		p.Remove(b, loop.NotRequested)
	}
	for _, s := range p.view.Certs.Stale {
		p.Do(loop.Apply{Object: s.Seen, Want: s.Want, Private: true})
	}
	p.growVolumes(ec)
}

// remark gives back the labels and owner references of pods and volumes that have lost them.
func (p *plan) remark(ec *v1beta2.EtcdCluster) {
	r := ec.Status.Restoring
	for _, obj := range p.view.Unmarked {
		why := "its labels or its owner reference were removed"
		if r != nil && obj.GetName() == r.Seed {
			if !haveStopped(&p.view, ec, r) {
				continue // the Services must not lead to both
			}
			why = "it is a member of the restored cluster"
		}
		p.mark(ec, obj, why)
	}
	for _, obj := range hiddenSeed(&p.view) {
		p.Do(loop.Patch{Object: obj, Part: "marks", Why: "its labels were removed", IfCurrent: true,
			Metadata: map[string]any{"labels": objects.SeedLabels(ec)}})
	}
}

// mark makes an object one of the cluster's: by its labels and its owner reference.
func (p *plan) mark(ec *v1beta2.EtcdCluster, obj client.Object, why string) {
	p.Do(loop.Patch{Object: obj, Part: "marks", Why: why, IfCurrent: true, Metadata: map[string]any{
		"labels":          objects.MemberLabels(ec, obj.GetName()),
		"ownerReferences": objects.ControlledBy(ec),
	}})
}

// claim has status written before anything else is done: what it remembers now, later steps
// depend on.
func (p *plan) claim(name string) { p.Claim = name }

// create creates the pod of a member, with its volume.
func (p *plan) create(ec *v1beta2.EtcdCluster, m *view.Member, version versions.Version, s objects.Start) {
	if objects.HasVolumes(ec) && m.Claim == nil {
		p.Do(loop.Create{Object: objects.Claim(ec, m.PodName), IfCurrent: true})
	}
	if m.Pod == nil {
		p.Do(loop.Create{Object: objects.Pod(ec, m.PodName, version.String(), s, p.view.Certs), IfCurrent: true})
	}
}

// ask requests a change from a member, after all other writes. What it returns may be changed.
func (p *plan) ask(why string, r members.Request) *session.Request {
	p.request = &session.Request{Request: r, Why: why}
	return p.request
}

// askLeader requests a change from the leader; nil if that does not answer.
func (p *plan) askLeader(ec *v1beta2.EtcdCluster, why string, r members.Request) *session.Request {
	leader := p.view.Leading()
	if leader == nil {
		return nil
	}
	r.At = objects.EndpointOf(ec, leader.Pod)
	return p.ask(why, r)
}

// decide is the next step, with its request as a write of the loop.
func (o *observer) decide(ec *v1beta2.EtcdCluster, seen view.Observation) (*plan, error) {
	next := decide(ec, seen)
	o.asker.NoteDecided(ec, next.waiting, next.memory.Maintenance)
	if next.request != nil {
		r, of := *next.request, objects.Key(ec)
		carryOut := func(ctx context.Context, _ loop.Caller) error { return o.asker.CarryOut(ctx, of, r) }
		next.Do(loop.Call{Part: "etcd " + string(r.What), IfCurrent: true, Do: carryOut})
	}
	return next, nil
}
