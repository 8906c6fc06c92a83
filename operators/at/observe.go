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
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
)

// observation is all that decide reads, besides the At.
type observation struct {
	// now is the wall clock's time.
	now time.Time
	// pod is the pod of the attempt at hand: the claimed one, or the one
	// that is to be claimed next, prepared or not. Nil if there is none.
	pod *corev1.Pod
	// last is the pod of the attempt before, while the next one is not
	// claimed. Nil if it is gone.
	last *corev1.Pod
	// placeholder is the pod that finds a node for the first attempt. Nil if there is none.
	placeholder *corev1.Pod
	// blocked is true when pod belongs to a deleted At of the same name.
	blocked bool
	// hasNodeSince is since when this process sees pod with a node; zero if it has none.
	hasNodeSince time.Time
	// output is the end of the command's output, where it is kept and the
	// command has ended.
	output string
	// takenBackUntil is until when lost marks of the pod are not restored again.
	takenBackUntil time.Time
	// hidden is true when the cache does not show a pod, and never will as it is: it has
	// no events.
	hidden bool
	// usualLateness is how late the latest runs were allowed to run; zero if that is not known.
	usualLateness time.Duration
}

// observer reads what the next step depends on.
type observer struct {
	group group
	logs  podLogs
	// takenBack are the Ats whose pod got its marks back, and is not to get
	// them again soon.
	takenBack *pauses
	known     *known
	// withheld is since when an output cannot be read. The time since the end of the command does
	// not count: no operator may have been there.
	withheld *sightings
	// arrivals is since when a pod has a node.
	arrivals *sightings
	latest   *latest
	readings *readings
	now      func() time.Time
}

// forget drops what is kept in memory about an At that is gone.
func (o *observer) forget(at types.NamespacedName) {
	o.takenBack.Forget(at)
	o.known.Forget(at)
	o.withheld.Forget(at)
	o.arrivals.Forget(at)
}

func (o *observer) observe(ctx context.Context, r *loop.Reader, at *atv1alpha1.At) (observation, error) {
	seen := observation{now: o.now().Round(0), takenBackUntil: o.takenBack.until(at), usualLateness: o.latest.usual()}

	placeholder, err := getPod(ctx, r, types.NamespacedName{Namespace: at.Namespace, Name: o.group.placeholderName(at)})
	if err != nil {
		return seen, err
	}
	if placeholder != nil && isPlaceholder(placeholder) && isOwn(placeholder, at, o.group.gvk) {
		seen.placeholder = placeholder
	}

	podKey := types.NamespacedName{Namespace: at.Namespace, Name: o.group.podName(at, at.Status.Attempts+1)}
	claimed := isClaimed(at)
	if claimed || at.Status.Phase.Finished() {
		podKey.Name = at.Status.PodName
	}
	if podKey.Name == "" { // finished without a start: its pod must not stay
		podKey.Name = o.group.podName(at, 1)
	}
	pod, err := getPod(ctx, r, podKey)
	if err != nil {
		return seen, err
	}
	if !claimed && !at.Status.Phase.Finished() && at.Status.PodName != "" {
		last, err := getPod(ctx, r, types.NamespacedName{Namespace: at.Namespace, Name: at.Status.PodName})
		if err != nil {
			return seen, err
		}
		if next := at.Status.NextAttemptTime; !hasUID(last, at.Status.PodUID) && (next == nil || !seen.now.Before(next.Time)) {
			// It seems gone, so the next attempt may start: the cache may only
			// not show it.
			if last, err = getPod(ctx, r.Live, types.NamespacedName{Namespace: at.Namespace, Name: at.Status.PodName}); err != nil {
				return seen, err
			}
		}
		if hasUID(last, at.Status.PodUID) {
			seen.last, seen.hidden = last, !isShown(last)
		}
	}
	lost := pod == nil && o.known.mayLast(at, podKey.Name)
	gone := claimed && !hasUID(pod, at.Status.PodUID) || isPrepared(at) && !hasUID(pod, at.Status.PreparedPodUID)
	if lost || gone || claimed && isOverdue(at, pod, seen.now) {
		// The pod seems gone, or not to have come far enough in time. That ends the
		// attempt, so a cache that is merely late must not decide it.
		if pod, err = getPod(ctx, r.Live, podKey); err != nil {
			return seen, err
		}
	}
	if lost || pod != nil {
		o.known.note(at, pod)
	}
	switch {
	case pod == nil:
		return seen, nil
	case at.Status.PodName == pod.Name:
		// Of a finished At, another pod of that name is what an operator made that was
		// late: nobody is to claim it any more.
		if hasUID(pod, at.Status.PodUID) || at.Status.Phase.Finished() && isOwn(pod, at, o.group.gvk) {
			seen.pod = pod
		}
	case isOwn(pod, at, o.group.gvk):
		seen.pod = pod
	case !at.Status.Phase.Finished() && apply.BelongsToPredecessor(pod, at):
		seen.pod, seen.blocked = pod, true
	}
	seen.hidden = seen.hidden || seen.pod != nil && !isShown(seen.pod) && !pods.IsOver(seen.pod)
	if (claimed || isPrepared(at)) && seen.pod != nil && seen.pod.Spec.NodeName != "" {
		seen.hasNodeSince = o.arrivals.since(at, seen.pod, seen.now)
	}
	if claimed && at.Spec.OutputBytes > 0 && seen.pod != nil && hasOutput(seen.pod) {
		seen.output, err = tail(ctx, o.logs, seen.pod, int64(at.Spec.OutputBytes))
		if err != nil && seen.now.Sub(o.withheld.since(at, seen.pod, seen.now)) < outputPatience {
			return seen, err
		}
	}
	return seen, nil
}

// hasUID says whether pod is there and has that UID.
func hasUID(pod *corev1.Pod, uid types.UID) bool { return pod != nil && pod.UID == uid }

func getPod(ctx context.Context, from client.Reader, key types.NamespacedName) (*corev1.Pod, error) {
	var pod corev1.Pod
	if err := from.Get(ctx, key, &pod); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return &pod, nil
}
