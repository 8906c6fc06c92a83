package memcached

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
)

// This file keeps servers from being evicted while one is restarted.

// guard keeps the budget. It lets no server be evicted while one is in the middle of a
// restart, also one that the present change did not begin.
func guard(mc *v1alpha1.Memcached, v *view) (p plan) {
	evictable := int32(1)
	if v.turn.isGuarded {
		evictable = 0
	}
	for i := range v.pods {
		pod := &v.pods[i]
		if _, changed := timeIn(pod, changedAnnotation); !changed || pod.DeletionTimestamp != nil || isAvailable(pod, v.now) {
			continue
		}
		if restart := restartOf(pod, v.now); !restart.isOverdue {
			evictable = 0
			p.WakeIn(restart.after)
		}
	}
	switch b := v.budget(); {
	case hasBudget(mc):
		p.Do(loop.Apply{Object: b, Want: disruptionBudget(mc, evictable)})
	case isOwned(b, mc) && b.DeletionTimestamp == nil:
		p.Remove(b, loop.NotRequested)
	}
	return p
}

// unguarded says why another server could still be evicted while one is restarted; empty
// if none can: Kubernetes sees a server go only when it is gone. While the budget has not
// been seen by its controller, the API server refuses all evictions; those that
// it has let pass before are in its status until the pods are ending. Without a budget of
// the operator's, the user has chosen not to wait.
func unguarded(mc *v1alpha1.Memcached, seen observation, pod *corev1.Pod) string {
	if !hasBudget(mc) {
		return ""
	}
	b := seen.budget()
	if b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntValue() != 0 || b.Status.ObservedGeneration < b.Generation {
		return fmt.Sprintf("PodDisruptionBudget %s is to keep the other servers from being evicted", b.Name)
	}
	for _, other := range seen.pods {
		if _, evicted := b.Status.DisruptedPods[other.Name]; evicted && other.Name != pod.Name && other.DeletionTimestamp == nil {
			return fmt.Sprintf("server %s is being evicted", other.Name)
		}
	}
	return ""
}
