package memcached

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
)

// observation is all that decide goes by, besides the Memcached.
type observation struct {
	now time.Time
	// behind is how long to wait for the cache, when it does not yet show what
	// this process wrote. Zero when it does.
	behind time.Duration
	// children are the children by kind; an empty object where there is none.
	children map[string]client.Object
	// pods are those of the servers, by name, also those that are ending. One
	// that is over, because it was evicted for example, is none: a Deployment
	// leaves it there, a StatefulSet makes it anew.
	pods []corev1.Pod
	// pulls are the pods that only pull an image.
	pulls []corev1.Pod
	// copies are the copies of Secrets that are there.
	copies []metav1.PartialObjectMetadata
	// resizes is true when the cluster can resize running pods.
	resizes bool
	// limits are of the servers that are not known to have the memory that they
	// were given, by name.
	limits map[string]limit
	// lost are servers without their labels, and inTheWay is a pod that has the
	// name of a server and is none.
	lost     []*corev1.Pod
	inTheWay string
	// inputs are what the pods are given from Secrets.
	inputs inputs
}

func (o observation) deployment() *appsv1.Deployment {
	return o.children[deploymentKind.kind].(*appsv1.Deployment)
}

func (o observation) statefulSet() *appsv1.StatefulSet {
	return o.children[statefulSetKind.kind].(*appsv1.StatefulSet)
}

func (o observation) budget() *policyv1.PodDisruptionBudget {
	return o.children[budgetKind.kind].(*policyv1.PodDisruptionBudget)
}

// observe reads everything that the next step depends on.
func (r *reconciler) observe(ctx context.Context, mc *v1alpha1.Memcached) (observation, error) {
	seen := observation{now: r.now().Round(0), resizes: r.resizes, children: map[string]client.Object{}}
	if wait, behind := r.writes.Behind(memcachedKind, key(mc), mc); behind {
		seen.behind = wait
		return seen, nil
	}
	for _, kind := range childKinds {
		child := kind.empty()
		at := client.ObjectKey{Namespace: mc.Namespace, Name: kind.name(mc)}
		var cached client.Object
		switch err := r.client.Get(ctx, at, child); {
		case apierrors.IsNotFound(err):
			child = kind.empty()
		case err != nil:
			return seen, err
		default:
			cached = child
		}
		if wait, behind := r.writes.Behind(kind.kind, at, cached); behind {
			seen.behind = max(seen.behind, wait)
		}
		seen.children[kind.kind] = child
	}
	if err := r.observeForeign(ctx, mc, seen); err != nil {
		return seen, err
	}
	if old, err := r.isOld(ctx, mc, seen); err != nil || old {
		seen.behind = max(seen.behind, conflictWait)
		return seen, err
	}
	if err := r.observePods(ctx, mc, &seen); err != nil || seen.behind > 0 {
		return seen, err
	}
	if err := r.observeLost(ctx, mc, &seen); err != nil {
		return seen, err
	}
	r.observeLimits(ctx, mc, &seen)
	var copies metav1.PartialObjectMetadataList
	copies.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(secretKind + "List"))
	if err := r.client.List(ctx, &copies, client.InNamespace(mc.Namespace), client.MatchingLabels(labels(mc))); err != nil {
		return seen, err
	}
	for _, c := range copies.Items {
		if isOurs(&c, mc) && c.DeletionTimestamp == nil {
			seen.copies = append(seen.copies, c)
		}
	}
	var err error
	seen.inputs, err = r.observeInputs(ctx, mc)
	return seen, err
}

// observeForeign finds the Deployment that another operator has made under this
// very Memcached: the cache does not show what lacks the operator's label. With
// identity Random the attempt to make a Deployment finds it; with Stable it is
// looked for as long as there is no StatefulSet.
func (r *reconciler) observeForeign(ctx context.Context, mc *v1alpha1.Memcached, seen observation) error {
	if !isStable(mc) || seen.statefulSet().UID != "" || seen.deployment().UID != "" {
		return nil
	}
	var d appsv1.Deployment
	err := r.live.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: deploymentKind.name(mc)}, &d)
	if err == nil && isOurs(&d, mc) {
		seen.children[deploymentKind.kind] = &d
	}
	return client.IgnoreNotFound(err)
}

// isOld says whether a child was already written for a later generation of the
// Memcached than the cache has, by another operator: this one must not undo it.
// The API server has the last word, because anybody may write an annotation.
func (r *reconciler) isOld(ctx context.Context, mc *v1alpha1.Memcached, seen observation) (bool, error) {
	for _, child := range []client.Object{seen.deployment(), seen.statefulSet()} {
		generation, err := strconv.ParseInt(child.GetAnnotations()[generationAnnotation], 10, 64)
		if err != nil || generation <= mc.Generation || !isOurs(child, mc) {
			continue
		}
		var live v1alpha1.Memcached
		err = r.live.Get(ctx, key(mc), &live)
		return live.Generation > mc.Generation, err
	}
	return false, nil
}

func (r *reconciler) observePods(ctx context.Context, mc *v1alpha1.Memcached, seen *observation) error {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(mc.Namespace), client.MatchingLabels{podsOf: selector(mc)[podsOf]}); err != nil {
		return err
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range pods.Items {
		pod := &pods.Items[i]
		if wait, behind := r.writes.Behind(podKind, client.ObjectKeyFromObject(pod), pod); behind {
			seen.behind = max(seen.behind, wait)
		}
		switch {
		case pod.Labels[appLabel] == selector(mc)[appLabel]:
			if isOver(pod) {
				continue
			}
			seen.pods = append(seen.pods, *pod)
		case pod.Labels[appLabel] == pullApp && metav1.IsControlledBy(pod, mc):
			seen.pulls = append(seen.pulls, *pod)
		}
	}
	return nil
}

// isOver says whether nothing will run in a pod any more.
func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}
