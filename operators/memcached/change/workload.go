package change

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// This file has the steps about the Deployment or StatefulSet that the servers belong to,
// and the Service by which clients find them.

// Adopt labels a Deployment that is to be replaced by a StatefulSet. Without the label it
// would not be found again. Its pods stay as they are.
func Adopt(mc *v1alpha1.Memcached, v *View) (p Plan) {
	if d := v.Deployment(); objects.IsStable(mc) && objects.IsOwned(d, mc) && d.Labels[run.ManagedByLabel] != objects.ManagedBy {
		p.Again, p.IsLast = true, true
		p.Do(loop.Patch{Object: d, Part: "adopt", Why: "Deployment without the label is replaced by a StatefulSet",
			IfSame: true, Metadata: map[string]any{"labels": objects.Labels(mc)}})
	}
	return p
}

// Serve applies the Service, which shows clients the servers of one identity.
func Serve(mc *v1alpha1.Memcached, v *View) (p Plan) {
	p.Serving = v.serving
	p.Do(loop.Apply{Object: loop.The[*corev1.Service](v.Children), Want: objects.Service(mc, v.serving)})
	return p
}

// Explain says what else a user is to know of servers that are ready.
func Explain(mc *v1alpha1.Memcached, v *View) (p Plan) {
	words, wait := pool.NoRolloutRestart(mc, v.Observation)
	p.Note = pool.IgnoredLimit(mc, v.template) + words
	p.WakeIn(wait)
	return p
}

// ApplyServers applies the Deployment or StatefulSet: what a cold change does not replace at
// once, or has been announced.
func ApplyServers(mc *v1alpha1.Memcached, v *View) (p Plan) {
	d, s := v.Deployment(), v.StatefulSet()
	var write loop.Write
	switch mayApply := v.isAnnounced || objects.IsStable(mc) && objects.IsOwned(s, mc); {
	case v.isHeld || !mayApply:
		return p
	case objects.IsStable(mc):
		want, err := objects.StatefulSet(mc, v.template, partition(v.planned, v.isAnnounced, v.Observation, v.template))
		write, p.Err = loop.Apply{Object: s, Want: want}, err
	default:
		want, err := objects.Deployment(mc, v.template)
		write, p.Err = loop.Apply{Object: d, Want: want}, err
		if err == nil && pool.IsForeign(d, mc) {
			p.Again = true
			write, p.Err = loop.ReplaceTemplate(d, objects.ManagedBy, want)
		}
	}
	if p.Err == nil {
		p.Do(write)
	}
	return p
}

// RemoveUnused removes the workload of the other identity, once clients see the requested
// one, and the copies of Secrets that no pod needs.
func RemoveUnused(mc *v1alpha1.Memcached, v *View) (p Plan) {
	_, other := pool.Workloads(mc, v.Observation)
	if objects.IsOwned(other, mc) && other.GetDeletionTimestamp() == nil && v.serving == mc.Spec.Identity && !v.isHeld {
		p.Remove(other, loop.NotRequested)
	}
	for _, c := range uselessCopies(mc, v.Observation) {
		p.Remove(c, loop.NotRequested)
	}
	return p
}

// partition lets the StatefulSet's controller replace pods only for an announced change,
// and then until the change is over. Where that is already under way, it was announced:
// the Memcached in the cache may be an earlier one, and a pod that is made while the
// partition is closed would be one of the old template.
func partition(planned *v1alpha1.UpgradeStatus, announced bool, seen pool.Observation, t objects.PodTemplate) int32 {
	s := seen.StatefulSet()
	rolling := s.Spec.UpdateStrategy.RollingUpdate
	isApplied := s.Annotations[objects.RevisionAnnotation] == t.Revision
	goesOn := rolling != nil && rolling.Partition != nil && *rolling.Partition == 0 && isApplied
	promoted := s.Status.CurrentRevision == s.Status.UpdateRevision
	switch {
	case pool.StablePods(seen) == 0 && s.UID != "" && s.Status.Replicas == 0 && (!isApplied || !promoted):
		// Nothing can be replaced, and what is made must not be of the old
		// template: that may be why there is nothing.
		goesOn = true
	case planned == nil:
		goesOn = goesOn && (!promoted || s.Status.ObservedGeneration < s.Generation)
	case planned.Kind != v1alpha1.Cold:
		goesOn = goesOn && s.Annotations[objects.OpenAnnotation] == t.Revision
	case announced && !pool.CanChangeInPlace(seen, t):
		goesOn = true
	}
	if goesOn {
		return 0
	}
	return objects.PartitionClosed
}

// uselessCopies are the copies of Secrets that are not named any more, once no
// pod mounts them.
func uselessCopies(mc *v1alpha1.Memcached, seen pool.Observation) []client.Object {
	var useless []client.Object
	for _, c := range seen.Copies {
		used := false
		for _, role := range objects.Roles(mc) {
			used = used || c.Name == objects.CopyName(mc, role.Name)
		}
		for _, pod := range seen.Pods {
			for _, v := range pod.Spec.Volumes {
				used = used || v.Secret != nil && v.Secret.SecretName == c.Name
			}
		}
		if !used {
			useless = append(useless, &corev1.Secret{ObjectMeta: c.ObjectMeta})
		}
	}
	return useless
}
