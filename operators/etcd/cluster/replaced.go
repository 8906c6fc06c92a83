package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/view"
)

// This file is about the volumes of members that a restored cluster has replaced. Until that is
// complete they are kept, and with keepOld also then: they lose the label by which the operator
// finds the volumes of members, so it never touches them again. They go with the EtcdCluster.

// isKept says whether the volume of a member is not to be deleted, although there is no such member.
func isKept(ec *v1beta2.EtcdCluster, name string) bool {
	r, done := ec.Status.Restoring, ec.Status.Restored
	return r != nil && slices.Contains(r.Replaced, name) || done != nil && slices.Contains(done.KeptPersistentVolumeClaims, name)
}

// setAside takes the replaced volumes out of the operator's sight; nothing, if all of them are.
func setAside(v *view.View, r *v1beta2.Restoring) (writes []loop.Write) {
	for _, name := range r.Replaced {
		if c := v.Of(name).Claim; c != nil && !objects.IsEnding(c) {
			writes = append(writes, loop.Patch{
				Object: c, Part: "kept", Why: "kept: its member was replaced by a restored cluster", IfCurrent: true,
				Metadata: map[string]any{"labels": map[string]any{objects.ClusterLabel: nil}, "annotations": annotation.Named(c, map[string]any{annotation.KeptFor: r.Seed})},
			})
		}
	}
	return writes
}

// observeReplaced finds the replaced pods and volumes that the lists of the cache do not show: volumes
// that were set aside and, when nothing else is missing, what has lost the label by which the cache
// shows it.
func observeReplaced(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *view.Observation) error {
	under := ec.Status.Restoring
	if under == nil || under.Phase != v1beta2.RestoreCompleting {
		return nil
	}
	isLast := ec.Status.ReadyMembers >= ec.Spec.Size
	for _, name := range under.Replaced {
		if pod := (&corev1.Pod{}); isLast && seen.Pods[name] == nil {
			if found, err := observeHidden(ctx, r, ec, name, true, pod, seen); err != nil {
				return err
			} else if found {
				seen.Pods[name] = pod
			}
		}
		if !objects.HasVolumes(ec) || seen.Claims[name] != nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		found, err := observeNamed(ctx, r, ec, name, isLast, claim, seen)
		switch {
		case err != nil:
			return err
		case found && annotation.Of(claim, annotation.KeptFor) == under.Seed:
			seen.Kept = append(seen.Kept, name)
		case found && annotation.Of(claim, annotation.KeptFor) == "":
			seen.Claims[name] = claim
			seen.Unmarked = append(seen.Unmarked, claim)
		}
	}
	return nil
}
