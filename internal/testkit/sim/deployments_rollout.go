package sim

import (
	"cmp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
)

// This file is how a rollout changes the sizes of ReplicaSets.

// isScalingEvent says whether the Deployment got another size since its ReplicaSets did.
func (r *rollout) isScalingEvent() bool {
	for _, rs := range active(r.all()) {
		if noted, ok := rs.Annotations[desiredReplicas]; ok && noted != strconv.Itoa(int(*r.d.Spec.Replicas)) {
			return true
		}
	}
	return false
}

// scale spreads another size of the Deployment over its ReplicaSets.
func (r *rollout) scale() func() error {
	all := active(r.all())
	want := *r.d.Spec.Replicas
	if rs := r.activeOrLatest(all); rs != nil {
		if *rs.Spec.Replicas == want {
			return nil
		}
		return r.scaleReplicaSet(rs, want)
	}
	if rs := r.newest; rs != nil && *rs.Spec.Replicas == want && rs.Annotations[desiredReplicas] == strconv.Itoa(int(want)) && rs.Status.AvailableReplicas == want {
		for _, rs := range active(r.old) {
			return r.scaleReplicaSet(rs, 0)
		}
		return nil
	}
	if r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return nil
	}
	surge, _ := fenceposts(r.d)
	allowed := int32(0)
	if want > 0 {
		allowed = want + surge
	}
	// What is to be added, or taken away, is shared in proportion; the rest is the
	// biggest one's. All are written one after the other: those that have their share
	// are known by their annotation.
	add := allowed - sum(all, requested)
	bySize := slices.Clone(all)
	slices.SortStableFunc(bySize, func(a, b *appsv1.ReplicaSet) int {
		newer := b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
		if add <= 0 {
			newer = -newer
		}
		return cmp.Or(cmp.Compare(*b.Spec.Replicas, *a.Spec.Replicas), newer)
	})
	sizes, left := make([]int32, len(bySize)), add
	for i, rs := range bySize {
		share := int32(0)
		if most, err := strconv.Atoi(rs.Annotations[maxReplicas]); err == nil && most > 0 && add != 0 {
			exact := float64(*rs.Spec.Replicas) * float64(allowed) / float64(most)
			share = int32(exact+0.5) - *rs.Spec.Replicas
			if add > 0 {
				share = min(max(share, 0), left)
			} else {
				share = max(min(share, 0), left)
			}
		}
		left -= share
		sizes[i] = *rs.Spec.Replicas + share
	}
	var steps []func() error
	for i, rs := range bySize {
		if i == 0 {
			sizes[i] = max(0, sizes[i]+left)
		}
		if step := r.scaleReplicaSet(rs, sizes[i]); step != nil {
			steps = append(steps, step)
		}
	}
	if len(steps) == 0 {
		return nil
	}
	return func() error {
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}
}

// activeOrLatest is the only one that is to have pods, or the last one if none is.
func (r *rollout) activeOrLatest(all []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	switch {
	case len(all) == 1:
		return all[0]
	case len(all) > 1:
		return nil
	case r.newest != nil:
		return r.newest
	case len(r.old) > 0:
		return r.old[len(r.old)-1]
	}
	return nil
}

// newReplicas is how many pods the newest ReplicaSet may have.
func (r *rollout) newReplicas(newest *appsv1.ReplicaSet, all []*appsv1.ReplicaSet) int32 {
	want, have := *r.d.Spec.Replicas, *newest.Spec.Replicas
	if r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return want
	}
	surge, _ := fenceposts(r.d)
	room := want + surge - sum(all, requested)
	if room <= 0 {
		return have
	}
	return have + min(room, want-have)
}

func (r *rollout) reconcileNewReplicaSet() func() error {
	want, have := *r.d.Spec.Replicas, *r.newest.Spec.Replicas
	if have == want {
		return nil
	}
	size := want
	if have < want {
		size = r.newReplicas(r.newest, r.all())
	}
	if size == have {
		return nil
	}
	return r.scaleReplicaSet(r.newest, size)
}

func (r *rollout) reconcileOldReplicaSets() func() error {
	old := active(r.old)
	if len(old) == 0 {
		return nil
	}
	_, unavailable := fenceposts(r.d)
	least := *r.d.Spec.Replicas - unavailable
	missing := *r.newest.Spec.Replicas - r.newest.Status.AvailableReplicas
	most := sum(r.all(), requested) - least - missing
	if most <= 0 {
		return nil
	}
	for _, rs := range old { // what does not serve goes first
		if unhealthy := *rs.Spec.Replicas - rs.Status.AvailableReplicas; unhealthy > 0 {
			return r.scaleReplicaSet(rs, *rs.Spec.Replicas-min(most, unhealthy))
		}
	}
	if spare := sum(append(slices.Clone(old), r.newest), available) - least; spare > 0 {
		return r.scaleReplicaSet(old[0], *old[0].Spec.Replicas-min(spare, *old[0].Spec.Replicas))
	}
	return nil
}

// recreate is for the strategy Recreate: no old pod is left when the first new one comes.
func (r *rollout) recreate() func() error {
	for _, rs := range active(r.old) {
		return r.scaleReplicaSet(rs, 0)
	}
	pods := podsByController(r.world.Server)
	for _, rs := range r.old {
		if len(pods[rs.UID]) > 0 {
			return nil
		}
	}
	return r.reconcileNewReplicaSet()
}

// cleanup deletes an old ReplicaSet too many.
func (r *rollout) cleanup() func() error {
	limit := r.d.Spec.RevisionHistoryLimit
	if limit == nil || len(r.old) <= int(*limit) {
		return nil
	}
	byRevision := slices.Clone(r.old)
	slices.SortStableFunc(byRevision, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revision(a), revision(b)) })
	for _, rs := range byRevision[:len(byRevision)-int(*limit)] {
		if rs.Status.Replicas == 0 && *rs.Spec.Replicas == 0 && rs.Generation <= rs.Status.ObservedGeneration {
			return func() error { return r.world.Server.Delete(rs, r.Name()) }
		}
	}
	return nil
}
