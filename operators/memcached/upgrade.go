package memcached

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
)

// This file is about the change that the servers need, and its announcement.

// planUpgrade announces in status the change that the servers need.
func planUpgrade(mc *v1alpha1.Memcached, v *view) (p plan) {
	p.Remember(&mc.Status).Upgrade = v.planned
	return p
}

// explain says what else a user is to know of servers that are ready.
func explain(mc *v1alpha1.Memcached, v *view) (p plan) {
	words, wait := noRolloutRestart(mc, v.observation)
	p.note = ignoredLimit(mc, v.template) + words
	p.WakeIn(wait)
	return p
}

// isAnnounced says whether status has announced a cold change, which must not begin
// before. The others need not be announced.
func isAnnounced(mc *v1alpha1.Memcached, planned *v1alpha1.UpgradeStatus) bool {
	if planned == nil || planned.Kind != v1alpha1.Cold {
		return true
	}
	announced := mc.Status.Upgrade
	return announced != nil && announced.Revision == planned.Revision && announced.Kind == v1alpha1.Cold
}

// plannedUpgrade is the change that the servers need: nil if they are as requested, or
// there are none.
func plannedUpgrade(mc *v1alpha1.Memcached, seen observation, t podTemplate) *v1alpha1.UpgradeStatus {
	var updated, outdated, restarting int32
	other := false
	for _, pod := range seen.pods {
		switch {
		case pod.DeletionTimestamp != nil:
		case isUpdated(&pod, t) && isRestarting(&pod, seen.now):
			restarting++
		case isUpdated(&pod, t):
			updated++
		default:
			outdated++
			other = other || pod.Labels[identityLabel] != string(mc.Spec.Identity)
		}
	}
	old, ok := workload(mc, seen)
	foreign := ok && old.GetAnnotations()[revisionAnnotation] == "" // another operator's, under this very Memcached
	announced := mc.Status.Upgrade
	if announced != nil && announced.Revision != t.revision {
		announced = nil
	}
	// One that was begun continues until the last server is available, and the
	// StatefulSet's controller takes the new template for the present one: before, a pod
	// that has to be made again would be one of the old template.
	s := seen.statefulSet()
	begun := announced != nil && (restarting > 0 || announced.Server != "" || isStable(mc) && s.Status.CurrentRevision != s.Status.UpdateRevision)
	takenOver := foreign && *mc.Spec.Size > 0
	if !ok {
		return nil
	}
	if outdated == 0 && !begun && !takenOver {
		return rolloutRestart(mc, seen, t)
	}
	if _, isDeployment := old.(*appsv1.Deployment); takenOver && isDeployment && isStable(mc) {
		other = true // its pods are not in the cache
	}
	kind, why := effect(mc, seen, t, other)
	if announced != nil && !isWorse(kind, announced.Kind) {
		return &v1alpha1.UpgradeStatus{Revision: t.revision, Kind: announced.Kind, Updated: updated, Message: announced.Message}
	}
	return &v1alpha1.UpgradeStatus{
		Revision: t.revision, Kind: kind, Updated: updated,
		Message: fmt.Sprintf("%s: %s", strings.Join(changedFields(seen, t), ", "), why),
	}
}

// isUpdated says whether a pod is as the template has it, or is about to be.
func isUpdated(pod *corev1.Pod, t podTemplate) bool {
	return pod.Annotations[revisionAnnotation] == t.revision && !isByHand(pod, t)
}

// canChangeInPlace says whether all pods that are not as the template has them
// can be changed as they run.
func canChangeInPlace(seen observation, t podTemplate) bool {
	for _, pod := range seen.pods {
		if pod.DeletionTimestamp != nil || isUpdated(&pod, t) {
			continue
		}
		if pod.Annotations[replaceAnnotation] != t.Annotations[replaceAnnotation] || !canGrow(seen, &pod, t) {
			return false
		}
	}
	return true
}
