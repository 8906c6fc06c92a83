package restoring

import (
	"reflect"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// createSeed creates the seed, and lets it go once status has recorded what has its data: one that is
// created again by somebody who does not know that does not run.
func createSeed(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, r *v1beta2.Restoring) {
	m := v.Seed
	version, pod := v.VersionFor(ec, m).String(), m.Pod
	if m.IsOnVolume && m.Claim == nil {
		s.Do(loop.Create{Object: objects.SeedClaim(ec, r), IfCurrent: true})
	}
	switch {
	case pod == nil:
		made, err := objects.SeedPod(ec, r, version, lastRevision(v), v.AgentImage, v.Certs)
		if err != nil {
			r.Problem = err.Error()
			return
		}
		s.Do(loop.Create{Object: made, IfCurrent: true})
	case objects.IsEnding(pod) || m.Data == "":
	case pods.IsOver(pod):
		s.Do(step.Removed(pod, "it has ended"))
	case r.SeedDataUID == "":
		r.SeedDataUID = m.Data
		s.Claim = "seeded"
	case pods.IsGated(pod, objects.Gate):
		s.Do(step.LetGo(pod))
	case !m.HasAnswered() && (pod.Spec.NodeName == "" || objects.LacksImage(pod)) &&
		(objects.ImageIn(pod) != objects.ImageOf(ec, version) || pod.Annotations[annotation.Template] != objects.TemplateHash(ec)):
		s.Do(step.Removed(pod, "it could not be started, and the spec has changed"))
	}
}

// removeSeeds deletes the seeds that status does not name: of restores that have failed, or that went
// on with another one. A cluster whose status was emptied may be one's.
func removeSeeds(ec *v1beta2.EtcdCluster, v *view.View) (writes []loop.Write) {
	st := ec.Status
	if st.ClusterID == "" && len(st.Founders) == 0 && st.Restoring == nil && st.Restored == nil {
		return nil
	}
	for _, obj := range v.Seeds {
		name := obj.GetName()
		m := v.Of(name)
		isNamed := st.Restoring != nil && st.Restoring.Seed == name || m.IsMember || m.Was.Name != ""
		if !isNamed && !objects.IsEnding(obj) {
			writes = append(writes, step.Removed(obj, "it is the seed of a restore that is over"))
		}
	}
	return writes
}

// sameSource says whether two sources are the same.
func sameSource(a, b v1beta2.RestoreSource) bool {
	if a.Time != nil && b.Time != nil && a.Time.Equal(b.Time) {
		a.Time, b.Time = nil, nil // whatever their time zones
	}
	return reflect.DeepEqual(a, b)
}

// HiddenSeed are the seed's pod and volume, as far as they have lost the label by which the cache shows
// them.
func HiddenSeed(v *view.View) []client.Object {
	var all []client.Object
	if v.Seed == nil {
		return nil
	}
	if pod := v.Seed.Pod; pod != nil && pod.Labels[apply.ManagedByLabel] != objects.ManagedBy {
		all = append(all, pod)
	}
	if c := v.Seed.Claim; c != nil && c.Labels[apply.ManagedByLabel] != objects.ManagedBy {
		all = append(all, c)
	}
	return all
}

// HaveStopped says whether no replaced member runs, or can be started again.
func HaveStopped(v *view.View, ec *v1beta2.EtcdCluster, r *v1beta2.Restoring) bool {
	for _, m := range v.Present {
		isOld := slices.Contains(r.Replaced, m.PodName) || m.Was.Name == "" && m.PodName != ec.Status.MemberBeingAdded
		if m.Pod == nil || !isOld || pods.IsOver(m.Pod) {
			continue
		}
		if m.Pod.Annotations[annotation.StoppedFor] != r.Seed || objects.ImageIn(m.Pod) != objects.NoImage || !objects.HasStopped(m.Pod) {
			return false
		}
	}
	return true
}
