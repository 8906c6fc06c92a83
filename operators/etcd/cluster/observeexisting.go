package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/membership"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/view"
)

// observeExisting finds what may be of a cluster that status knows nothing of. It is read from the API
// server, all of the namespace, once when an EtcdCluster is new: what has lost its labels is in no cache.
func observeExisting(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *view.Observation) error {
	if ec.Spec.Paused || ec.Status.ClusterID != "" || len(ec.Status.Founders) > 0 || ec.Status.Restoring != nil {
		return nil
	}
	place := func(obj client.Object, isKnown bool, take func()) {
		switch {
		case isKnown || !membership.MayBeOf(ec, obj):
		case objects.IsOwned(ec, obj):
			take()
			seen.Unmarked = append(seen.Unmarked, obj)
		case !membership.IsClaim(obj) || !objects.IsEnding(obj): // a claim that ends brings its data to nobody
			seen.Existing = append(seen.Existing, obj)
		}
	}
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(ec.Namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		place(pod, seen.Pods[pod.Name] != nil, func() { seen.Pods[pod.Name] = pod })
	}
	var claims corev1.PersistentVolumeClaimList
	if err := r.Live.List(ctx, &claims, client.InNamespace(ec.Namespace)); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		place(claim, seen.Claims[claim.Name] != nil, func() { seen.Claims[claim.Name] = claim })
	}
	return nil
}
