package cluster

import (
	"context"

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
	there, err := podsAndClaims(ctx, r.Live, client.InNamespace(ec.Namespace))
	if err != nil {
		return err
	}
	for _, obj := range there {
		name, isClaim := obj.GetName(), membership.IsClaim(obj)
		switch {
		case isClaim && seen.Claims[name] != nil, !isClaim && seen.Pods[name] != nil, !membership.MayBeOf(ec, obj):
		case objects.IsOwned(ec, obj):
			take(seen, obj)
			seen.Unmarked = append(seen.Unmarked, obj)
		case !isClaim || !objects.IsEnding(obj): // a claim that ends brings its data to nobody
			seen.Existing = append(seen.Existing, obj)
		}
	}
	return nil
}
