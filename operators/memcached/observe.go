package memcached

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/services"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// observer reads what the next step depends on.
type observer struct {
	digests *contents.Digests
	limits  *limits
	missing *firstSeen
	resizes bool // the cluster can resize running pods
	now     func() time.Time
}

// forget drops what is kept in memory about a Memcached that is gone.
func (o *observer) forget(mc types.NamespacedName) {
	figures.Forget(mc)
	o.digests.Forget(mc)
	o.limits.ForgetAll(func(k limitKey) bool { return k.owner == mc })
	o.missing.Forget(mc)
}

func (o *observer) observe(ctx context.Context, r *loop.Reader, mc *v1alpha1.Memcached) (pool.Observation, error) {
	seen := pool.Observation{Now: o.now().Round(0), Resizes: o.resizes, Children: r.Children}
	if err := observePods(ctx, r, mc, &seen); err != nil {
		return seen, err
	}
	var err error
	if seen.Unmounted, err = contents.Missing(ctx, r, seen.Pods, objects.SecretKind); err != nil {
		return seen, err
	}
	if seen.Reached, err = services.Read(ctx, r, loop.The[*corev1.Service](seen.Children)); err != nil {
		return seen, err
	}
	if err := observeHidden(ctx, r, mc, &seen); err != nil {
		return seen, err
	}
	r.Children = seen.Children
	if err := isCurrent(ctx, r.Live, mc, seen); err != nil {
		return seen, err
	}
	seen.Missing = pool.MissingServers(mc, seen)
	seen.MissingSince = o.missing.of(key(mc), len(seen.Missing) > 0, seen.Now)
	if err := observeLost(ctx, r.Live, mc, &seen); err != nil {
		return seen, err
	}
	o.observeLimits(ctx, r, mc, &seen)
	var copies metav1.PartialObjectMetadataList
	copies.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(objects.SecretKind + "List"))
	if err := r.List(ctx, &copies, client.InNamespace(mc.Namespace), client.MatchingLabels(objects.Labels(mc))); err != nil {
		return seen, err
	}
	for _, c := range copies.Items {
		if objects.IsOwned(&c, mc) && c.DeletionTimestamp == nil {
			seen.Copies = append(seen.Copies, c)
		}
	}
	if objects.HasBudget(mc) {
		if seen.Budgets, err = disruption.Others(ctx, r, objects.MemcachedKind, client.ObjectKey{Namespace: mc.Namespace, Name: objects.ChildName(mc)}, seen.Pods); err != nil {
			return seen, err
		}
	}
	seen.Inputs, err = o.observeInputs(ctx, r, mc)
	return seen, err
}

// observeHidden finds the workload of the other identity where the cache does not show it,
// because it lacks the operator's label: that of another operator, under this very
// Memcached, or one that lost the label before it could be removed. One of the requested
// identity is found by the attempt to make it.
func observeHidden(ctx context.Context, r *loop.Reader, mc *v1alpha1.Memcached, seen *pool.Observation) error {
	shown, other := pool.Workloads(mc, *seen)
	name := objects.ChildName(mc)
	if !objects.IsStable(mc) {
		name = objects.PoolName(mc)
	}
	if other.GetUID() != "" || !mayBeHidden(mc, *seen, shown.GetUID() != "") {
		return nil
	}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: name}, other)
	if err == nil && objects.IsOwned(other, mc) {
		seen.Children = seen.Children.With(other)
	}
	return client.IgnoreNotFound(err)
}

// mayBeHidden says whether it is worth a request to look for a workload of the other
// identity: one of another operator may be there until this one has made its own. Later
// there are pods of it, or a change is announced or requested, and not all of it is done.
func mayBeHidden(mc *v1alpha1.Memcached, seen pool.Observation, isMade bool) bool {
	if objects.IsStable(mc) && !isMade {
		return true
	}
	for _, pod := range seen.Pods {
		if identity := pod.Labels[objects.IdentityLabel]; identity != "" && identity != string(mc.Spec.Identity) && pod.DeletionTimestamp == nil {
			return true
		}
	}
	ready := meta.FindStatusCondition(mc.Status.Conditions, status.Ready)
	return (mc.Generation > 1 || mc.Status.Upgrade != nil) && (ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != mc.Generation)
}

// isCurrent returns a conflict if a child was already written for a later generation of
// the Memcached than the cache has, by another operator: this one must not undo it. The
// API server decides, because any user may write an annotation.
func isCurrent(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, seen pool.Observation) error {
	for _, child := range []client.Object{seen.Deployment(), seen.StatefulSet()} {
		generation, err := strconv.ParseInt(child.GetAnnotations()[objects.GenerationAnnotation], 10, 64)
		if err != nil || generation <= mc.Generation || !objects.IsOwned(child, mc) {
			continue
		}
		var now v1alpha1.Memcached
		if err := live.Get(ctx, key(mc), &now); err != nil {
			return err
		}
		if now.Generation > mc.Generation {
			return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("memcacheds").GroupResource(), mc.Name, errors.New("the cache is late"))
		}
		return nil
	}
	return nil
}

func observePods(ctx context.Context, r client.Reader, mc *v1alpha1.Memcached, seen *pool.Observation) error {
	var list corev1.PodList
	if err := r.List(ctx, &list, client.InNamespace(mc.Namespace), client.MatchingLabels{objects.PodsOf: objects.Selector(mc)[objects.PodsOf]}); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range list.Items {
		pod := &list.Items[i]
		switch {
		case pod.Labels[objects.AppLabel] == objects.Selector(mc)[objects.AppLabel]:
			if pods.IsOver(pod) {
				continue
			}
			seen.Pods = append(seen.Pods, *pod)
		case pod.Labels[objects.AppLabel] == objects.PullApp && metav1.IsControlledBy(pod, mc):
			seen.Pulls = append(seen.Pulls, *pod)
		}
	}
	return nil
}
