package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/view"
)

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
		case found && claim.Annotations[annotation.KeptFor] == under.Seed:
			seen.Kept = append(seen.Kept, name)
		case found && claim.Annotations[annotation.KeptFor] == "":
			seen.Claims[name] = claim
			seen.Unmarked = append(seen.Unmarked, claim)
		}
	}
	return nil
}
