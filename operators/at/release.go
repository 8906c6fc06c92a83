package at

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// This file decides about claimed pods: whether their gate may still be removed, and
// until when what may last.

// releaseOrWithdraw removes the gate of a claimed pod, unless it is too late for that by
// now: the operator that claimed it may have died hours ago. Then the pod is withdrawn.
func releaseOrWithdraw(at *atv1alpha1.At, seen observation) step {
	now := seen.now
	var wakes earliest
	late := ""
	expire := func(reason string, expired bool, deadline time.Time) {
		if expired && late == "" {
			late = reason
		}
		wakes.add(deadline)
	}
	if deadline, ok := startingDeadline(at); ok && at.Status.Attempts == 1 {
		expire(reasonMissed, now.After(deadline), deadline)
	}
	if at.Spec.ActiveDeadlineSeconds != nil {
		deadline := activeDeadline(at)
		expire(reasonDeadline, !now.Before(deadline), deadline)
	}
	if at.Spec.PendingDeadlineSeconds != nil {
		deadline := pendingDeadline(at, seen.pod)
		expire(reasonPendingDeadline, !now.Before(deadline), deadline)
	}

	action := release
	if late != "" {
		action, wakes = withdraw, earliest{}
	}
	if action == release {
		return step{action: release, pod: seen.pod, wakeAt: wakes.time}
	}
	return step{action: withdraw, pod: seen.pod, news: tooLate(at, seen, late)}
}

// withdrawal is the result of an attempt whose pod is withdrawn, whatever the
// clock says by now.
func withdrawal(at *atv1alpha1.At, seen observation) news {
	return tooLate(at, seen, seen.pod.Annotations[withdrawnAnnotation])
}

// tooLate is the result of an attempt that was claimed and whose gate was not removed,
// for a reason that is also the mark of its pod.
func tooLate(at *atv1alpha1.At, seen observation, reason string) news {
	deadline, hasDeadline := startingDeadline(at)
	switch {
	case reason == reasonMissed && hasDeadline:
		return missed(at, seen, deadline, notReleased(at))
	case reason == reasonDeadline && at.Spec.ActiveDeadlineSeconds != nil:
		return outcome(at, seen, result{reason: reasonDeadline, message: deadlineMessage(at), final: true})
	case reason == reasonPendingDeadline && at.Spec.PendingDeadlineSeconds != nil:
		return outcome(at, seen, pendingTooLong(at, reasonGated, notReleased(at)))
	}
	// Another writer's mark: the operator writes no other.
	return outcome(at, seen, result{reason: reasonPodDeleted, message: "The pod was withdrawn before it ran"})
}

// startingDeadline is until when a first attempt may be released, if it has one.
func startingDeadline(at *atv1alpha1.At) (deadline time.Time, ok bool) {
	due, err := scheduledTime(at)
	if err != nil || at.Spec.StartingDeadlineSeconds == nil {
		return time.Time{}, false
	}
	return due.Add(seconds(*at.Spec.StartingDeadlineSeconds)), true
}

// runDeadline is when a run that has a deadline has taken too long: counted from when it
// was allowed to run.
func runDeadline(at *atv1alpha1.At, pod *corev1.Pod) time.Time {
	if allowed := allowedAt(pod); at.Status.Attempts == 1 && allowed.After(at.Status.StartTime.Time) {
		return allowed.Add(seconds(*at.Spec.ActiveDeadlineSeconds))
	}
	return activeDeadline(at)
}

// killDeadline is until when the pod of a run that has a deadline has to be ended. On a
// node the kubelet ends it, and says how: with a signal, and by force at the end of its
// grace period.
func killDeadline(at *atv1alpha1.At, pod *corev1.Pod) time.Time {
	deadline := runDeadline(at, pod)
	switch {
	case started(pod):
		return deadline.Add(gracePeriod(pod)).Add(reportGrace)
	case pod.Spec.NodeName != "":
		return deadline.Add(killGrace)
	}
	return deadline
}

// stopsTooLate says whether the kubelet's own deadline, which counts from the arrival of the
// pod on its node, is noticeably later than the run's: the pod has waited for a node. Its
// shortest deadline then makes the kubelet stop it now.
func stopsTooLate(pod *corev1.Pod, deadline time.Time) bool {
	own := podDeadline(pod)
	return !isStopped(pod) && pod.DeletionTimestamp.IsZero() && (own.IsZero() || own.After(deadline.Add(problem)))
}

// pendingDeadline is until when the command of an attempt has to start.
func pendingDeadline(at *atv1alpha1.At, pod *corev1.Pod) time.Time {
	return pendingSince(at, pod).Add(seconds(*at.Spec.PendingDeadlineSeconds))
}

// pendingSince is since when an attempt waits to start: counted from the claim of the first
// attempt, which may have been long after its pod was made, and from the creation of a
// further attempt's pod, of which Kubernetes stores the second that had begun. If a node has
// refused the attempt's pod, that was the first of them, which status has.
func pendingSince(at *atv1alpha1.At, pod *corev1.Pod) time.Time {
	switch {
	case at.Status.PendingSince != nil:
		return at.Status.PendingSince.Time
	case at.Status.Attempts == 1:
		return at.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Add(time.Second)
}
