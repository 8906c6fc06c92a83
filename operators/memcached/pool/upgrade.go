package pool

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
)

// This file is about the change that the servers need, and its announcement.

// IsAnnounced says whether status has announced a cold change, which must not begin
// before. The others need not be announced.
func IsAnnounced(mc *v1alpha1.Memcached, planned *v1alpha1.UpgradeStatus) bool {
	if planned == nil || planned.Kind != v1alpha1.Cold {
		return true
	}
	announced := mc.Status.Upgrade
	return announced != nil && announced.Revision == planned.Revision && announced.Kind == v1alpha1.Cold
}

// PlannedUpgrade is the change that the servers need: nil if they are as requested, or
// there are none.
func PlannedUpgrade(mc *v1alpha1.Memcached, seen Observation, t objects.PodTemplate) *v1alpha1.UpgradeStatus {
	var updated, outdated, restarting int32
	other := false
	for _, pod := range seen.Pods {
		switch {
		case pod.DeletionTimestamp != nil:
		case IsUpdated(&pod, t) && IsRestarting(&pod, seen.Now):
			restarting++
		case IsUpdated(&pod, t):
			updated++
		default:
			outdated++
			other = other || pod.Labels[objects.IdentityLabel] != string(mc.Spec.Identity)
		}
	}
	old, ok := Workload(mc, seen)
	// Without a revision it is another operator's, under this very Memcached.
	foreign := ok && old.GetAnnotations()[objects.RevisionAnnotation] == ""
	announced := mc.Status.Upgrade
	if announced != nil && announced.Revision != t.Revision {
		announced = nil
	}
	// One that was begun continues until the last server is available, and the
	// StatefulSet's controller takes the new template for the present one: before, a pod
	// that has to be made again would be one of the old template.
	s := seen.StatefulSet()
	begun := announced != nil && (restarting > 0 || announced.Server != "" || objects.IsStable(mc) && s.Status.CurrentRevision != s.Status.UpdateRevision)
	takenOver := foreign && *mc.Spec.Size > 0
	if !ok {
		return nil
	}
	if outdated == 0 && !begun && !takenOver {
		return rolloutRestart(mc, seen, t)
	}
	if _, isDeployment := old.(*appsv1.Deployment); takenOver && isDeployment && objects.IsStable(mc) {
		other = true // its pods are not in the cache
	}
	kind, why := effect(mc, seen, t, other)
	if announced != nil && !isWorse(kind, announced.Kind) {
		return &v1alpha1.UpgradeStatus{Revision: t.Revision, Kind: announced.Kind, Updated: updated, Message: announced.Message}
	}
	return &v1alpha1.UpgradeStatus{
		Revision: t.Revision, Kind: kind, Updated: updated,
		Message: fmt.Sprintf("%s: %s", strings.Join(changedFields(seen, t), ", "), why),
	}
}

// IsUpdated says whether a pod is as the template has it, or is about to be.
func IsUpdated(pod *corev1.Pod, t objects.PodTemplate) bool {
	return pod.Annotations[objects.RevisionAnnotation] == t.Revision && !isByHand(pod, t)
}

// CanChangeInPlace says whether all pods that are not as the template has them
// can be changed as they run.
func CanChangeInPlace(seen Observation, t objects.PodTemplate) bool {
	for _, pod := range seen.Pods {
		if pod.DeletionTimestamp != nil || IsUpdated(&pod, t) {
			continue
		}
		if pod.Annotations[objects.ReplaceAnnotation] != t.Annotations[objects.ReplaceAnnotation] || !canGrow(seen, &pod, t) {
			return false
		}
	}
	return true
}

// GoesInPlace says whether the change is one of running pods.
func GoesInPlace(mc *v1alpha1.Memcached, seen Observation, t objects.PodTemplate) bool {
	return onlyByHand(seen, t) || objects.IsStable(mc) && CanChangeInPlace(seen, t)
}

// onlyByHand says whether the servers are as the template has them, but for images that
// were changed by hand.
func onlyByHand(seen Observation, t objects.PodTemplate) bool {
	some := false
	for _, pod := range seen.Pods {
		if pod.DeletionTimestamp == nil && !IsUpdated(&pod, t) {
			if pod.Annotations[objects.RevisionAnnotation] != t.Revision {
				return false
			}
			some = true
		}
	}
	return some
}

// CanStepInPlace says whether the workload is such that its pods may be changed
// while they run: those of a Deployment only where that undoes what was done by
// hand.
func CanStepInPlace(mc *v1alpha1.Memcached, seen Observation, t objects.PodTemplate) bool {
	if objects.IsStable(mc) {
		return IsAsApplied(seen.StatefulSet(), t) && CanChangeInPlace(seen, t)
	}
	d := seen.Deployment()
	return objects.IsOwned(d, mc) && d.Annotations[objects.RevisionAnnotation] == t.Revision &&
		d.Status.ObservedGeneration >= d.Generation && onlyByHand(seen, t)
}

// IsAsApplied says whether the StatefulSet is what was last wanted, and its
// controller has seen that, so that its status is about it.
func IsAsApplied(s *appsv1.StatefulSet, t objects.PodTemplate) bool {
	rolling := s.Spec.UpdateStrategy.RollingUpdate
	return s.UID != "" && s.DeletionTimestamp == nil && s.Spec.Template.Annotations[objects.RevisionAnnotation] == t.Revision &&
		s.Status.ObservedGeneration >= s.Generation && s.Status.UpdateRevision != "" &&
		rolling != nil && rolling.Partition != nil && *rolling.Partition == objects.PartitionClosed
}
