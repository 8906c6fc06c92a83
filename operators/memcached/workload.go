package memcached

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
)

// This file has the steps about the Deployment or StatefulSet that the servers belong to,
// and the Service by which clients find them.

// adopt labels a Deployment that is to be replaced by a StatefulSet. Without the label it
// would not be found again. Its pods stay as they are.
func adopt(mc *v1alpha1.Memcached, v *view) (p plan) {
	if d := v.deployment(); isStable(mc) && isOwned(d, mc) && d.Labels[run.ManagedByLabel] != managedBy {
		p.Again, p.IsLast = true, true
		p.Do(loop.Patch{Object: d, Part: "adopt", Why: "Deployment without the label is replaced by a StatefulSet",
			IfSame: true, Metadata: map[string]any{"labels": labels(mc)}})
	}
	return p
}

// serve applies the Service, which shows clients the servers of one identity.
func serve(mc *v1alpha1.Memcached, v *view) (p plan) {
	p.serving = v.serving
	p.Do(loop.Apply{Object: loop.The[*corev1.Service](v.children), Want: service(mc, v.serving)})
	return p
}

// applyServers applies the Deployment or StatefulSet: what a cold change does not replace at
// once, or has been announced.
func applyServers(mc *v1alpha1.Memcached, v *view) (p plan) {
	d, s := v.deployment(), v.statefulSet()
	var write loop.Write
	switch mayApply := v.isAnnounced || isStable(mc) && isOwned(s, mc); {
	case v.isHeld || !mayApply:
		return p
	case isStable(mc):
		want, err := statefulSet(mc, v.template, partition(v.planned, v.isAnnounced, v.observation, v.template))
		write, p.Err = loop.Apply{Object: s, Want: want}, err
	default:
		want, err := deployment(mc, v.template)
		write, p.Err = loop.Apply{Object: d, Want: want}, err
		if err == nil && isForeign(d, mc) {
			p.Again = true
			write, p.Err = loop.ReplaceTemplate(d, managedBy, want)
		}
	}
	if p.Err == nil {
		p.Do(write)
	}
	return p
}

// removeUnused removes the workload of the other identity, once clients see the requested
// one, and the copies of Secrets that no pod needs.
func removeUnused(mc *v1alpha1.Memcached, v *view) (p plan) {
	_, other := workloads(mc, v.observation)
	if isOwned(other, mc) && other.GetDeletionTimestamp() == nil && v.serving == mc.Spec.Identity && !v.isHeld {
		p.Remove(other, loop.NotRequested)
	}
	for _, c := range uselessCopies(mc, v.observation) {
		p.Remove(c, loop.NotRequested)
	}
	return p
}

// partition lets the StatefulSet's controller replace pods only for an announced change,
// and then until the change is over. Where that is already under way, it was announced:
// the Memcached in the cache may be an earlier one, and a pod that is made while the
// partition is closed would be one of the old template.
func partition(planned *v1alpha1.UpgradeStatus, announced bool, seen observation, t podTemplate) int32 {
	s := seen.statefulSet()
	rolling := s.Spec.UpdateStrategy.RollingUpdate
	isApplied := s.Annotations[revisionAnnotation] == t.revision
	goesOn := rolling != nil && rolling.Partition != nil && *rolling.Partition == 0 && isApplied
	promoted := s.Status.CurrentRevision == s.Status.UpdateRevision
	switch {
	case stablePods(seen) == 0 && s.UID != "" && s.Status.Replicas == 0 && (!isApplied || !promoted):
		// Nothing can be replaced, and what is made must not be of the old
		// template: that may be why there is nothing.
		goesOn = true
	case planned == nil:
		goesOn = goesOn && (!promoted || s.Status.ObservedGeneration < s.Generation)
	case planned.Kind != v1alpha1.Cold:
		goesOn = goesOn && s.Annotations[openAnnotation] == t.revision
	case announced && !canChangeInPlace(seen, t):
		goesOn = true
	}
	if goesOn {
		return 0
	}
	return partitionClosed
}

// stablePods is how many pods of a StatefulSet are there.
func stablePods(seen observation) int32 {
	var n int32
	for _, pod := range seen.pods {
		if pod.Labels[identityLabel] == string(v1alpha1.StableIdentity) {
			n++
		}
	}
	return n
}

// servingIdentity is the identity that clients are to see: the requested one, once its
// servers are ready, or there are none of the other.
func servingIdentity(mc *v1alpha1.Memcached, seen observation, t podTemplate) v1alpha1.Identity {
	d, s := seen.deployment(), seen.statefulSet()
	switch {
	case isStable(mc) && isOwned(d, mc) && d.DeletionTimestamp == nil && !isComplete(mc, s.Annotations, s.Status.ReadyReplicas, s.Status.ObservedGeneration >= s.Generation, t):
		return v1alpha1.RandomIdentity
	case !isStable(mc) && isOwned(s, mc) && s.DeletionTimestamp == nil && !isComplete(mc, d.Annotations, d.Status.ReadyReplicas, d.Status.ObservedGeneration >= d.Generation, t):
		return v1alpha1.StableIdentity
	}
	return mc.Spec.Identity
}

func isComplete(mc *v1alpha1.Memcached, annotations map[string]string, ready int32, observed bool, t podTemplate) bool {
	return annotations[revisionAnnotation] == t.revision && observed && ready >= *mc.Spec.Size
}

// workloads are the object that makes the servers of the requested identity, and that of the
// other one.
func workloads(mc *v1alpha1.Memcached, seen observation) (requested, other client.Object) {
	if isStable(mc) {
		return seen.statefulSet(), seen.deployment()
	}
	return seen.deployment(), seen.statefulSet()
}

// workload is the object that the present servers belong to.
func workload(mc *v1alpha1.Memcached, seen observation) (client.Object, bool) {
	requested, other := workloads(mc, seen)
	switch {
	case isOwned(other, mc): // until it is gone
		return other, true
	case isOwned(requested, mc):
		return requested, true
	}
	return nil, false
}

// uselessCopies are the copies of Secrets that are not named any more, once no
// pod mounts them.
func uselessCopies(mc *v1alpha1.Memcached, seen observation) []client.Object {
	var useless []client.Object
	for _, c := range seen.copies {
		used := false
		for _, role := range roles(mc) {
			used = used || c.Name == copyName(mc, role.name)
		}
		for _, pod := range seen.pods {
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

// isAsApplied says whether the StatefulSet is what was last wanted, and its
// controller has seen that, so that its status is about it.
func isAsApplied(s *appsv1.StatefulSet, t podTemplate) bool {
	rolling := s.Spec.UpdateStrategy.RollingUpdate
	return s.UID != "" && s.DeletionTimestamp == nil && s.Spec.Template.Annotations[revisionAnnotation] == t.revision &&
		s.Status.ObservedGeneration >= s.Generation && s.Status.UpdateRevision != "" &&
		rolling != nil && rolling.Partition != nil && *rolling.Partition == partitionClosed
}
