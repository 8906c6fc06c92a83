package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
)

// This file is about the volumes of members that a restored cluster has replaced. Until that is
// complete they are kept, and with keepOld also then: they lose the label by which the operator
// finds the volumes of members, so it never touches them again. They go with the EtcdCluster.

// keptAnnotation has, on a volume that is kept, the name of the seed that has replaced its member.
const keptAnnotation = "etcd-operator/kept-for"

// isKept says whether the volume of a member is not to be deleted, although there is no such member.
func isKept(ec *v1beta2.EtcdCluster, name string) bool {
	r, done := ec.Status.Restoring, ec.Status.Restored
	return r != nil && slices.Contains(r.Replaced, name) || done != nil && slices.Contains(done.Kept, name)
}

// setAside takes the replaced volumes out of the operator's sight. It returns true when it has.
func (p *plan) setAside(seen observation, r *v1beta2.Restoring) bool {
	all := true
	for _, name := range r.Replaced {
		if c := seen.claims[name]; c != nil && !isEnding(c) {
			all = false
			p.patch(c, "kept", "kept: its member was replaced by a restored cluster", map[string]any{"metadata": map[string]any{
				"labels":      map[string]any{clusterLabel: nil},
				"annotations": map[string]any{keptAnnotation: r.Seed},
			}})
		}
	}
	return all
}

// observeReplaced finds the replaced pods that have lost the label by which the cache shows them. They
// are looked for when nothing else is missing.
func observeReplaced(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *observation) error {
	under := ec.Status.Restoring
	if under == nil || under.Phase != v1beta2.RestoreCompleting || ec.Status.ReadyMembers < ec.Spec.Size {
		return nil
	}
	for _, name := range under.Replaced {
		if seen.pods[name] != nil {
			continue
		}
		pod := &corev1.Pod{}
		if found, err := observeHidden(ctx, r, ec, name, true, pod, seen); err != nil {
			return err
		} else if found {
			seen.pods[name] = pod
		}
	}
	return nil
}

// observeKept finds the volumes that were set aside for the restore that is under way.
func observeKept(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *observation) error {
	under := ec.Status.Restoring
	if under == nil || !hasVolumes(ec) {
		return nil
	}
	for _, name := range under.Replaced {
		if seen.claims[name] != nil {
			continue
		}
		c := &corev1.PersistentVolumeClaim{}
		err := r.Get(ctx, client.ObjectKey{Namespace: ec.Namespace, Name: name}, c)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && isOwned(ec, c) && c.Annotations[keptAnnotation] == under.Seed {
			seen.kept = append(seen.kept, name)
		}
	}
	return nil
}
