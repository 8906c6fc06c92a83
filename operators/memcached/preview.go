package memcached

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// Preview is what the operator would do to the servers that are there.
type Preview struct {
	// Upgrade is what status.upgrade would say first; nil if no server is changed.
	Upgrade *v1alpha1.UpgradeStatus
	// Problem is why the operator would not make the change; empty if it would.
	Problem string
	// IsHeld says that with the problem nothing is changed, not even the size.
	IsHeld bool
	// Servers are the pods of the servers that are there, by name.
	Servers []corev1.Pod
	// Changed are the names of those that the change is made to, in the order of the names, and
	// Restarted the names of those that restart in their pods.
	Changed, Restarted []string
	// Kept are the names of those that are changed and keep their items.
	Kept []string
}

// PreviewOf is the preview for a Memcached as it would be after a change. It is decided by the code that
// the operator decides with, from what is read now; resizes says whether the cluster can resize running pods.
func PreviewOf(ctx context.Context, k client.Reader, mc *v1alpha1.Memcached, resizes bool) (Preview, error) {
	seen := pool.Observation{Now: time.Now(), Resizes: resizes, Children: loop.Children{}}
	for child, name := range map[client.Object]string{&appsv1.Deployment{}: objects.ChildName(mc), &appsv1.StatefulSet{}: objects.PoolName(mc)} {
		if err := k.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: name}, child); client.IgnoreNotFound(err) != nil {
			return Preview{}, err
		}
		seen.Children = seen.Children.With(child)
	}
	if err := observePods(ctx, k, mc, &seen); err != nil {
		return Preview{}, err
	}
	r, err := pool.RequestOf(mc, seen)
	if err != nil {
		return Preview{}, err
	}
	mc, t := r.Memcached, r.Template
	p := Preview{Upgrade: pool.PlannedUpgrade(mc, seen, t), Servers: seen.Pods}
	if r.Refused != nil {
		p.Problem, p.IsHeld = r.Refused.Message, r.IsHeld
	}
	if p.Upgrade == nil {
		return p, nil
	}
	inPlace := pool.GoesInPlace(mc, seen, t)
	for _, pod := range pool.ToChange(seen, t) {
		p.Changed = append(p.Changed, pod.Name)
		if inPlace && pool.RestartsServer(pod, t) {
			p.Restarted = append(p.Restarted, pod.Name)
		}
	}
	p.Kept = pool.Kept(mc, seen, t)
	return p, nil
}
