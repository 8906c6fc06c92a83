package change

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// This file keeps servers from being evicted while one is restarted.

// Guard keeps the budget. It lets no server be evicted while one is in the middle of a
// restart, also one that the present change did not begin.
func Guard(mc *v1alpha1.Memcached, v *View) (p Plan) {
	evictable := int32(1)
	if v.turn.isGuarded {
		evictable = 0
	}
	for i := range v.Pods {
		pod := &v.Pods[i]
		if _, changed := pool.TimeIn(pod, objects.ChangedAnnotation); !changed || pod.DeletionTimestamp != nil || pool.IsAvailable(pod, v.Now) {
			continue
		}
		if restart := pool.RestartOf(pod, v.Now); !restart.IsOverdue {
			evictable = 0
			p.WakeIn(restart.After)
		}
	}
	switch b := v.Budget(); {
	case objects.HasBudget(mc):
		p.Do(loop.Apply{Object: b, Want: objects.DisruptionBudget(mc, evictable)})
	case objects.IsOwned(b, mc) && b.DeletionTimestamp == nil:
		p.Remove(b, loop.NotRequested)
	}
	return p
}

// unguarded says why another server could still be evicted while one is restarted; empty
// if none can: Kubernetes sees a server go only when it is gone. While the budget has not
// been seen by its controller, the API server refuses all evictions; those that
// it has let pass before are in its status until the pods are ending. Without a budget of
// the operator's, the user has chosen not to wait.
func unguarded(mc *v1alpha1.Memcached, seen pool.Observation, pod *corev1.Pod) string {
	if !objects.HasBudget(mc) {
		return ""
	}
	b := seen.Budget()
	if b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntValue() != 0 || b.Status.ObservedGeneration < b.Generation {
		return fmt.Sprintf("PodDisruptionBudget %s is to keep the other servers from being evicted", b.Name)
	}
	for _, other := range seen.Pods {
		if _, evicted := b.Status.DisruptedPods[other.Name]; evicted && other.Name != pod.Name && other.DeletionTimestamp == nil {
			return fmt.Sprintf("server %s is being evicted", other.Name)
		}
	}
	return ""
}
