package pool

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
)

// IsForeign says whether a Deployment has the template of another operator, which made it under this very Memcached.
func IsForeign(d *appsv1.Deployment, mc *v1alpha1.Memcached) bool {
	return objects.IsOwned(d, mc) && d.Annotations[objects.RevisionAnnotation] == "" && d.Spec.Template.Annotations[objects.RevisionAnnotation] == ""
}

// StablePods is how many pods of a StatefulSet are there.
func StablePods(seen Observation) int32 {
	var n int32
	for _, pod := range seen.Pods {
		if pod.Labels[objects.IdentityLabel] == string(v1alpha1.StableIdentity) {
			n++
		}
	}
	return n
}

// ServingIdentity is the identity that clients are to see: the requested one, once its
// servers are ready, or there are none of the other.
func ServingIdentity(mc *v1alpha1.Memcached, seen Observation, t objects.PodTemplate) v1alpha1.Identity {
	d, s := seen.Deployment(), seen.StatefulSet()
	switch {
	case objects.IsStable(mc) && objects.IsOwned(d, mc) && d.DeletionTimestamp == nil && !isComplete(mc, s.Annotations, s.Status.ReadyReplicas, s.Status.ObservedGeneration >= s.Generation, t):
		return v1alpha1.RandomIdentity
	case !objects.IsStable(mc) && objects.IsOwned(s, mc) && s.DeletionTimestamp == nil && !isComplete(mc, d.Annotations, d.Status.ReadyReplicas, d.Status.ObservedGeneration >= d.Generation, t):
		return v1alpha1.StableIdentity
	}
	return mc.Spec.Identity
}

func isComplete(mc *v1alpha1.Memcached, annotations map[string]string, ready int32, observed bool, t objects.PodTemplate) bool {
	return annotations[objects.RevisionAnnotation] == t.Revision && observed && ready >= *mc.Spec.Size
}

// Workloads are the object that makes the servers of the requested identity, and that of the
// other one.
func Workloads(mc *v1alpha1.Memcached, seen Observation) (requested, other client.Object) {
	if objects.IsStable(mc) {
		return seen.StatefulSet(), seen.Deployment()
	}
	return seen.Deployment(), seen.StatefulSet()
}

// Workload is the object that the present servers belong to.
func Workload(mc *v1alpha1.Memcached, seen Observation) (client.Object, bool) {
	requested, other := Workloads(mc, seen)
	switch {
	case objects.IsOwned(other, mc): // until it is gone
		return other, true
	case objects.IsOwned(requested, mc):
		return requested, true
	}
	return nil, false
}
