package pool

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
)

// This file is about kubectl rollout restart, which sets an annotation in the template of a
// workload. A Deployment's controller follows it at once. That of a StatefulSet does not, as
// its partition lets it replace no pod.

const (
	// RestartedAnnotation is kubectl's, with the time.
	RestartedAnnotation = "kubectl.kubernetes.io/restartedAt"
	// RestartNoted is for how long it is said that servers are not restarted.
	RestartNoted = time.Hour
)

// rolloutRestart is the change that kubectl rollout restart has begun; nil if there is none,
// or it is over.
func rolloutRestart(mc *v1alpha1.Memcached, seen Observation, t objects.PodTemplate) *v1alpha1.UpgradeStatus {
	d := seen.Deployment()
	isOver := d.Status.ObservedGeneration >= d.Generation && d.Status.Replicas > 0 && d.Status.UpdatedReplicas == d.Status.Replicas
	if objects.IsStable(mc) || !objects.IsOwned(d, mc) || isOver {
		return nil
	}
	old, restarted := restartedPods(seen, d.Spec.Template)
	if old == 0 {
		return nil
	}
	return &v1alpha1.UpgradeStatus{Revision: t.Revision, Kind: v1alpha1.Cold, Updated: restarted, Message: fmt.Sprintf(
		"kubectl rollout restart of Deployment %s: the servers are replaced one after the other, and each starts with an empty cache", d.Name)}
}

// NoRolloutRestart says that kubectl rollout restart restarts no server of a StatefulSet, and
// for how long that is yet to be said; "" if there was none lately.
func NoRolloutRestart(mc *v1alpha1.Memcached, seen Observation) (words string, wait time.Duration) {
	s := seen.StatefulSet()
	if !objects.IsStable(mc) || !objects.IsOwned(s, mc) {
		return "", 0
	}
	at, err := time.Parse(time.RFC3339, s.Spec.Template.Annotations[RestartedAnnotation])
	if wait = at.Add(RestartNoted).Sub(seen.Now); err != nil || wait <= 0 {
		return "", 0
	}
	if old, _ := restartedPods(seen, s.Spec.Template); old == 0 {
		return "", 0
	}
	return fmt.Sprintf(". kubectl rollout restart of StatefulSet %s restarts no server: to start one anew, and empty, delete its pod; when it is ready, the next one", s.Name), wait
}

// restartedPods are how many pods are from before kubectl rollout restart, and how many from
// after it.
func restartedPods(seen Observation, template corev1.PodTemplateSpec) (old, restarted int32) {
	at := template.Annotations[RestartedAnnotation]
	for _, pod := range seen.Pods {
		switch {
		case pod.DeletionTimestamp != nil:
		case at == "" || pod.Annotations[RestartedAnnotation] == at:
			restarted++
		default:
			old++
		}
	}
	return old, restarted
}
