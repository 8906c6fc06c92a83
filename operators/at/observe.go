package at

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
)

// outputPatience is how long after the end of a command its output is asked
// for again, when the node does not hand it out. The result then goes without.
const outputPatience = 30 * time.Second

// observation is all that decide goes by, besides the At.
type observation struct {
	// now is the wall clock's time.
	now time.Time
	// pod is the pod of the attempt at hand: the claimed one, or the one
	// that is to be claimed next. Nil if there is none.
	pod *corev1.Pod
	// last is the pod of the attempt before, while the next one is not
	// claimed. Nil if it is gone.
	last *corev1.Pod
	// inTheWay is true when pod belongs to a deleted At of the same name.
	inTheWay bool
	// output is the end of the command's output, where it is kept and the
	// command has ended.
	output string
	// refusedUntil is when the API server may be asked again for what it has
	// refused. Zero if it has not.
	refused      action
	refusedUntil time.Time
	// takenBackUntil is until when lost marks of the pod are not restored again.
	takenBackUntil time.Time
	// hidden is true when the cache does not show a pod, and never will as it is:
	// no event tells of it.
	hidden bool
	// behind is how long to wait for the cache, when it does not yet show
	// what this process wrote. Zero when it does.
	behind time.Duration
}

// observe reads everything that the next step depends on.
func (r *reconciler) observe(ctx context.Context, at *atv1alpha1.At) (observation, error) {
	seen := observation{now: r.now().Round(0)}
	seen.refused, seen.refusedUntil = r.refusals.until(at)
	_, seen.takenBackUntil = r.takenBack.until(at)
	if wait, behind := r.writes.Behind(atKind, key(at), at); behind {
		seen.behind = wait
		return seen, nil
	}

	podKey := types.NamespacedName{Namespace: at.Namespace, Name: r.group.podName(at, at.Status.Attempts+1)}
	claimed := isClaimed(at)
	if claimed || at.Status.Phase.Finished() {
		podKey.Name = at.Status.PodName
	}
	if podKey.Name == "" { // finished without a start: its pod must not stay
		podKey.Name = r.group.podName(at, 1)
	}
	pod, wait, err := r.cachedPod(ctx, podKey)
	if err != nil || wait > 0 {
		seen.behind = wait
		return seen, err
	}
	if !claimed && !at.Status.Phase.Finished() && at.Status.PodName != "" {
		last, wait, err := r.cachedPod(ctx, types.NamespacedName{Namespace: at.Namespace, Name: at.Status.PodName})
		if err != nil || wait > 0 {
			seen.behind = wait
			return seen, err
		}
		if next := at.Status.NextAttemptTime; !isThe(last, at.Status.PodUID) && (next == nil || !seen.now.Before(next.Time)) {
			// It seems gone, so the next attempt may start: the cache may only
			// not show it.
			if last, err = getPod(ctx, r.live, types.NamespacedName{Namespace: at.Namespace, Name: at.Status.PodName}); err != nil {
				return seen, err
			}
		}
		if isThe(last, at.Status.PodUID) {
			seen.last, seen.hidden = last, !isShown(last)
		}
	}
	lost := pod == nil && r.hidden.has(key(at), podKey.Name)
	if lost || claimed && (!isThe(pod, at.Status.PodUID) || isOverdue(at, pod, seen.now)) {
		// The claimed pod seems gone, or not to have come far enough in time.
		// That ends the attempt, so a cache that is merely late must not decide
		// it.
		if pod, err = getPod(ctx, r.live, podKey); err != nil {
			return seen, err
		}
		r.hidden.note(key(at), pod)
	}
	switch {
	case pod == nil:
		return seen, nil
	case at.Status.PodName == pod.Name:
		if isThe(pod, at.Status.PodUID) {
			seen.pod = pod
		}
	case isOwn(pod, at, r.group.gvk):
		seen.pod = pod
	case !at.Status.Phase.Finished() && apply.BelongsToPredecessor(pod, at):
		seen.pod, seen.inTheWay = pod, true
	}
	seen.hidden = seen.hidden || seen.pod != nil && !isShown(seen.pod) && !phaseIsFinal(seen.pod)
	if claimed && at.Spec.OutputBytes > 0 && seen.pod != nil && hasOutput(seen.pod) {
		seen.output, err = r.logs.tail(ctx, seen.pod, int64(at.Spec.OutputBytes))
		// A result is not held up for ever by a node that does not hand it out.
		if err != nil && seen.now.Before(endOf(seen.pod, time.Time{}).Add(outputPatience)) {
			return seen, err
		}
	}
	return seen, nil
}

// cachedPod is a pod of the cache, nil if it has none, and how long to wait for
// the cache if it does not yet show what this process wrote.
func (r *reconciler) cachedPod(ctx context.Context, key types.NamespacedName) (*corev1.Pod, time.Duration, error) {
	pod, err := getPod(ctx, r.client, key)
	if err != nil {
		return nil, 0, err
	}
	var cached client.Object
	if pod != nil {
		cached = pod
	}
	if wait, behind := r.writes.Behind(podKind, key, cached); behind {
		return nil, wait, nil
	}
	return pod, 0, nil
}

// isThe says whether pod is there and has that UID.
func isThe(pod *corev1.Pod, uid types.UID) bool { return pod != nil && pod.UID == uid }

func getPod(ctx context.Context, from client.Reader, key types.NamespacedName) (*corev1.Pod, error) {
	var pod corev1.Pod
	if err := from.Get(ctx, key, &pod); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return &pod, nil
}
