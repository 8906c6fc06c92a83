package memcached

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
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
)

// observation is all that decide reads, besides the Memcached.
type observation struct {
	now time.Time
	// children are the children by kind; an empty object where there is none.
	children loop.Children
	// pods are those of the servers, by name, also those that are ending. One that is
	// over, because it was evicted for example, is none: a Deployment leaves it there, a
	// StatefulSet creates it again.
	pods []corev1.Pod
	// unmounted are the Secrets that pods mount and that are not there.
	unmounted []pods.Mount
	// reached are the pods that the Service leads to.
	reached services.Targets
	// pulls are the pods that only pull an image.
	pulls []corev1.Pod
	// copies are the copies of Secrets that are there.
	copies []metav1.PartialObjectMetadata
	// resizes is true when the cluster can resize running pods.
	resizes bool
	// limits are of the servers that are not known to have the memory that they
	// were given, by name.
	limits map[string]limit
	// missing are names of servers that the cache does not show, and have been
	// missing since then.
	missing      []string
	missingSince time.Time
	// lost are servers without their labels, and blockedBy is a pod that has the
	// name of a server and is none.
	lost      []*corev1.Pod
	blockedBy string
	// budgets are PodDisruptionBudgets of others that select pods, too.
	budgets []string
	// inputs are what the pods are given from Secrets.
	inputs inputs
}

func (o observation) deployment() *appsv1.Deployment {
	return loop.The[*appsv1.Deployment](o.children)
}

func (o observation) statefulSet() *appsv1.StatefulSet {
	return loop.The[*appsv1.StatefulSet](o.children)
}

func (o observation) budget() *policyv1.PodDisruptionBudget {
	return loop.The[*policyv1.PodDisruptionBudget](o.children)
}

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

func (o *observer) observe(ctx context.Context, r *loop.Reader, mc *v1alpha1.Memcached) (observation, error) {
	seen := observation{now: o.now().Round(0), resizes: o.resizes, children: r.Children}
	if err := observePods(ctx, r, mc, &seen); err != nil {
		return seen, err
	}
	var err error
	if seen.unmounted, err = contents.Missing(ctx, r, seen.pods, secretKind); err != nil {
		return seen, err
	}
	if seen.reached, err = services.Read(ctx, r, loop.The[*corev1.Service](seen.children)); err != nil {
		return seen, err
	}
	if err := observeHidden(ctx, r, mc, &seen); err != nil {
		return seen, err
	}
	r.Children = seen.children
	if err := isCurrent(ctx, r.Live, mc, seen); err != nil {
		return seen, err
	}
	seen.missing = missingServers(mc, seen)
	seen.missingSince = o.missing.of(key(mc), len(seen.missing) > 0, seen.now)
	if err := observeLost(ctx, r.Live, mc, &seen); err != nil {
		return seen, err
	}
	o.observeLimits(ctx, r, mc, &seen)
	var copies metav1.PartialObjectMetadataList
	copies.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(secretKind + "List"))
	if err := r.List(ctx, &copies, client.InNamespace(mc.Namespace), client.MatchingLabels(labels(mc))); err != nil {
		return seen, err
	}
	for _, c := range copies.Items {
		if isOwned(&c, mc) && c.DeletionTimestamp == nil {
			seen.copies = append(seen.copies, c)
		}
	}
	if hasBudget(mc) {
		if seen.budgets, err = disruption.Others(ctx, r, memcachedKind, client.ObjectKey{Namespace: mc.Namespace, Name: childName(mc)}, seen.pods); err != nil {
			return seen, err
		}
	}
	seen.inputs, err = o.observeInputs(ctx, r, mc)
	return seen, err
}

// observeHidden finds the workload of the other identity where the cache does not show it,
// because it lacks the operator's label: that of another operator, under this very
// Memcached, or one that lost the label before it could be removed. One of the requested
// identity is found by the attempt to make it.
func observeHidden(ctx context.Context, r *loop.Reader, mc *v1alpha1.Memcached, seen *observation) error {
	shown, other := workloads(mc, *seen)
	name := childName(mc)
	if !isStable(mc) {
		name = poolName(mc)
	}
	if other.GetUID() != "" || !mayBeHidden(mc, *seen, shown.GetUID() != "") {
		return nil
	}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: name}, other)
	if err == nil && isOwned(other, mc) {
		seen.children = seen.children.With(other)
	}
	return client.IgnoreNotFound(err)
}

// mayBeHidden says whether it is worth a request to look for a workload of the other
// identity: one of another operator may be there until this one has made its own. Later
// there are pods of it, or a change is announced or requested, and not all of it is done.
func mayBeHidden(mc *v1alpha1.Memcached, seen observation, isMade bool) bool {
	if isStable(mc) && !isMade {
		return true
	}
	for _, pod := range seen.pods {
		if identity := pod.Labels[identityLabel]; identity != "" && identity != string(mc.Spec.Identity) && pod.DeletionTimestamp == nil {
			return true
		}
	}
	ready := meta.FindStatusCondition(mc.Status.Conditions, status.Ready)
	return (mc.Generation > 1 || mc.Status.Upgrade != nil) && (ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != mc.Generation)
}

// isCurrent returns a conflict if a child was already written for a later generation of
// the Memcached than the cache has, by another operator: this one must not undo it. The
// API server decides, because any user may write an annotation.
func isCurrent(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, seen observation) error {
	for _, child := range []client.Object{seen.deployment(), seen.statefulSet()} {
		generation, err := strconv.ParseInt(child.GetAnnotations()[generationAnnotation], 10, 64)
		if err != nil || generation <= mc.Generation || !isOwned(child, mc) {
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

func observePods(ctx context.Context, r client.Reader, mc *v1alpha1.Memcached, seen *observation) error {
	var list corev1.PodList
	if err := r.List(ctx, &list, client.InNamespace(mc.Namespace), client.MatchingLabels{podsOf: selector(mc)[podsOf]}); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range list.Items {
		pod := &list.Items[i]
		switch {
		case pod.Labels[appLabel] == selector(mc)[appLabel]:
			if pods.IsOver(pod) {
				continue
			}
			seen.pods = append(seen.pods, *pod)
		case pod.Labels[appLabel] == pullApp && metav1.IsControlledBy(pod, mc):
			seen.pulls = append(seen.pulls, *pod)
		}
	}
	return nil
}
