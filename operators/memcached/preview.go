package memcached

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
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
	seen := observation{now: time.Now(), resizes: resizes, children: loop.Children{}}
	for child, name := range map[client.Object]string{&appsv1.Deployment{}: childName(mc), &appsv1.StatefulSet{}: poolName(mc)} {
		if err := k.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: name}, child); client.IgnoreNotFound(err) != nil {
			return Preview{}, err
		}
		seen.children = seen.children.With(child)
	}
	if err := observePods(ctx, k, mc, &seen); err != nil {
		return Preview{}, err
	}
	r, err := requestOf(mc, seen)
	if err != nil {
		return Preview{}, err
	}
	mc, t := r.Memcached, r.template
	p := Preview{Upgrade: plannedUpgrade(mc, seen, t), Servers: seen.pods}
	if r.refused != nil {
		p.Problem, p.IsHeld = r.refused.Message, r.isHeld
	}
	if p.Upgrade == nil {
		return p, nil
	}
	inPlace := goesInPlace(mc, seen, t)
	for _, pod := range toChange(seen, t) {
		p.Changed = append(p.Changed, pod.Name)
		if inPlace && restartsServer(pod, t) {
			p.Restarted = append(p.Restarted, pod.Name)
		}
	}
	p.Kept = kept(mc, seen, t)
	return p, nil
}
