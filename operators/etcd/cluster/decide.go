package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/steps"
	"example.com/fairlead/operators/etcd/membership"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/restoring"
	"example.com/fairlead/operators/etcd/rollout"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/versions"
	"example.com/fairlead/operators/etcd/view"
)

// plan is what to do now, by all steps that were taken, and what status reports of it.
type plan struct {
	step.Step
	view view.View
	// memory is status after the steps.
	memory v1beta2.EtcdClusterStatus
	// waiting is what is waited for: the longer, the later it is looked again.
	waiting session.Waiting
}

// table has the steps of the package comment.
var table = []func(*v1beta2.EtcdCluster, *view.View) step.Step{
	membership.StartStopped,
	membership.SettleExisting,
	restoring.RestoreBackup,
	membership.Join,
	membership.Form,
	membership.RecoverQuorum,
	membership.Restore,
	rollout.TakeBack,
	membership.RemoveStrays,
	rollout.DropHistory,
	rollout.AwaitMaintenance,
	membership.AwaitQuorum,
	membership.SettleCorrupt,
	rollout.MakeSpace,
	membership.GoBack,
	membership.SettleLearner,
	membership.RemoveLost,
	rollout.Authenticate,
	membership.RemoveSurplus,
	membership.AddMissing,
	membership.TakeOver,
	rollout.RollOut,
	rollout.KeepUp,
}

// decide is the next step. At most one thing is changed of the members at a time.
func decide(ec *v1beta2.EtcdCluster, seen view.Observation) *plan {
	next := &plan{view: view.Of(ec, seen), memory: *ec.Status.DeepCopy()}
	v := &next.view
	if ec.Spec.Paused {
		next.Wake(seen.Now.Add(step.RestingWake))
		return next
	}
	var err error
	if v.Wanted, err = versions.Parse(ec.Spec.Version); err != nil {
		next.Stall(reason.InvalidVersion, "spec.version: %v", err)
		return next
	}
	next.Do(children(ec, v)...)
	next.Do(remarks(ec, v)...)
	next.Do(membership.MarkSuspects(v)...)
	next.Do(membership.MarkVoters(v)...)
	switch {
	case seen.Taken == nil:
		now := ec.DeepCopy()
		steps.Take(&next.Step, table, now, v, &now.Status)
		next.memory = now.Status
	case ec.Spec.AdoptExisting && membership.IsOrphan(ec, seen.Taken): // a late cache hid it when the others were taken in
		next.Add(membership.Adopt(ec, seen.Taken))
	default:
		next.Stall(apply.ReasonConflict, "%s %q has the name of a member, and is not owned by this EtcdCluster: delete or rename it", loop.KindOf(seen.Taken), seen.Taken.GetName())
	}
	if v.Find(func(m *view.Member) bool { return m.MayFollow }) != nil {
		next.Later()
	}
	next.pace(seen.Waiting)
	return next
}

// children are the objects beside the members.
func children(ec *v1beta2.EtcdCluster, v *view.View) []loop.Write {
	var kept []*corev1.Pod
	for _, m := range v.Present {
		if m.Pod != nil && objects.MayGoBack(ec) {
			kept = append(kept, m.Pod)
		}
	}
	writes := []loop.Write{loop.Apply{Object: v.Peers, Want: objects.KeptPeerService(ec, kept)}, loop.Apply{Object: v.Clients, Want: objects.ClientService(ec, v.LeadsToMarked())}}
	switch b := v.Budget(); {
	case objects.HasBudget(ec):
		writes = append(writes, loop.Apply{Object: b, Want: objects.DisruptionBudget(ec, v.LeastAvailable(ec))})
	case objects.IsOwned(ec, b) && !objects.IsEnding(b):
		writes = append(writes, step.Removed(b, loop.NotRequested))
	}
	for _, s := range v.Certs.Stale {
		writes = append(writes, loop.Apply{Object: s.Seen, Want: s.Want, Private: true})
	}
	return append(writes, rollout.GrowVolumes(ec, v)...)
}

// remarks give back the labels and owner references of pods and volumes that have lost them.
func remarks(ec *v1beta2.EtcdCluster, v *view.View) (writes []loop.Write) {
	r := ec.Status.Restoring
	for _, obj := range v.Unmarked {
		why := "its labels or its owner reference were missing"
		if r != nil && obj.GetName() == r.Seed {
			if !restoring.HaveStopped(v, ec, r) {
				continue // the Services must not lead to both
			}
			why = "it is a member of the restored cluster"
		}
		writes = append(writes, step.Mark(ec, obj, why))
	}
	for _, obj := range restoring.HiddenSeed(v) {
		writes = append(writes, loop.Patch{Object: obj, Part: "marks", Why: "its labels were removed", IfCurrent: true,
			Metadata: map[string]any{"labels": objects.SeedLabels(ec)}})
	}
	return writes
}

// decide is the next step, with its request as a write of the loop.
func (o *observer) decide(ec *v1beta2.EtcdCluster, seen view.Observation) (*plan, error) {
	next := decide(ec, seen)
	o.asker.NoteDecided(ec, next.waiting, next.memory.Maintenance)
	if next.Request != nil {
		r, of := *next.Request, objects.Key(ec)
		carryOut := func(ctx context.Context, _ loop.Caller) error { return o.asker.CarryOut(ctx, of, r) }
		next.Do(loop.Call{Part: "etcd " + string(r.What), IfCurrent: true, Do: carryOut})
	}
	return next, next.Err
}
