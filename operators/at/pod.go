package at

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
)

// This file reads pods: what has become of an attempt.

// terminated is how the command has ended; nil if it has not, or the kubelet has not reported it.
func terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	return pods.Status(pod, commandContainer).State.Terminated
}

// hasOutput says whether the command has ended, and has been there to write something: of
// a container that never was, or that the node has lost, the kubelet reports an end
// without an ID.
func hasOutput(pod *corev1.Pod) bool {
	end := terminated(pod)
	return end != nil && end.ContainerID != ""
}

// ended says whether the command will not run, or continue to run, in pod. Sidecars may.
func ended(pod *corev1.Pod) bool { return terminated(pod) != nil || pods.IsOver(pod) }

// started says whether the command has started in pod.
func started(pod *corev1.Pod) bool {
	state := pods.Status(pod, commandContainer).State
	return state.Running != nil || state.Terminated != nil
}

// gracePeriod is how long a command may take to end when it has got a signal to stop.
func gracePeriod(pod *corev1.Pod) time.Duration {
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		return seconds(*grace)
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// endOf is when the command ended, or otherwise if the pod does not say.
func endOf(pod *corev1.Pod, otherwise time.Time) time.Time {
	if end := terminated(pod); end != nil && end.FinishedAt.Unix() > 0 {
		return end.FinishedAt.Time
	}
	return otherwise
}

// waitsFor says what keeps the command of a claimed pod from starting. The
// kubelet alternates between the error and the wait for the next try; both
// give the same words, so that status does not change with every turn.
func waitsFor(pod *corev1.Pod) (reason, message string) {
	if !pod.DeletionTimestamp.IsZero() {
		return reasonPodDeleted, "The pod is being deleted"
	}
	for _, container := range pods.Statuses(pod) {
		if last := container.LastTerminationState.Terminated; last != nil {
			// A restartable init container. Its state changes all the time.
			return reasonCrashLoop, status.Shortened(fmt.Sprintf("Container %q is crash-looping (%d restarts): exit code %d", container.Name, container.RestartCount, last.ExitCode) + lastWords(last.Message))
		}
		reason, words := pods.CannotStart(pod, container)
		if reason == pods.NoImage {
			words += ": correct it in a new At, or make it available"
		}
		if reason != "" {
			return reason, "The command cannot start: " + words
		}
	}
	if gates := pod.Spec.SchedulingGates; len(gates) > 0 {
		return reasonGated, fmt.Sprintf("The pod waits behind scheduling gate %q of the pod template: whoever it is for has to remove it", gates[0].Name)
	}
	if words := pods.Unschedulable(pod); words != "" {
		return reasonUnschedulable, "The pod " + words
	}
	if pod.Spec.NodeName == "" {
		return reasonStarting, "The pod waits for the scheduler to choose a node"
	}
	what := "the pod"
	if mounts := pods.Mounts(pod); len(mounts) > 0 && pods.IsUnprepared(pod) {
		what += ", which mounts " + pods.Listed(mounts, ", ")
	}
	return reasonStarting, fmt.Sprintf("Node %q is preparing %s: kubectl describe pod %s shows its events", pod.Spec.NodeName, what, pod.Name)
}

// slow is what there is to say of a pod that has not started its command, once that takes long. Until then, look is
// when to look again; zero after that.
func slow(pod *corev1.Pod, now time.Time) (say news, look time.Time) {
	why, message := waitsFor(pod)
	look = pod.CreationTimestamp.Time
	if released := releasedAt(pod); released.After(look) {
		look = released
	}
	look = look.Add(problem)
	if why == reasonStarting {
		look = look.Add(slowStart - problem)
	}
	if now.Before(look) {
		return news{}, look
	}
	return news{phase: atv1alpha1.Running, reason: why, message: message}, time.Time{}
}

// pendingTooLong is the result of an attempt that could not start in time.
func pendingTooLong(at *atv1alpha1.At, why, message string) result {
	return result{
		reason:  reasonPendingDeadline,
		message: fmt.Sprintf("The command did not start within pendingDeadlineSeconds (%d s): %s: %s", *at.Spec.PendingDeadlineSeconds, why, message),
	}
}

// gateIndex is where the operator's gate is among the scheduling gates of a pod, and
// below zero if it was removed.
func gateIndex(pod *corev1.Pod) int {
	return slices.IndexFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == gateName })
}

// isWithdrawn says whether a pod is behind the operator's gate and must stay there.
func isWithdrawn(pod *corev1.Pod) bool {
	return isMarked(pod) && gateIndex(pod) >= 0
}

// isMarked says whether a pod has the mark of one that is withdrawn.
func isMarked(pod *corev1.Pod) bool { return pod.Annotations[withdrawnAnnotation] != "" }

// micros is how an instant is written into an annotation, rounded up as in
// status.
func micros(t time.Time) string { return ceilMicro(t.UTC()).Format(metav1.RFC3339Micro) }

// releasedAt is when the gate of a pod was removed, zero if the pod does not say.
func releasedAt(pod *corev1.Pod) time.Time {
	released, err := time.Parse(metav1.RFC3339Micro, pod.Annotations[releasedAnnotation])
	if err != nil {
		return time.Time{}
	}
	return released
}

// sidecarsRun says whether ordinary containers other than the command's still
// run. Restartable init containers are ended by the kubelet.
func sidecarsRun(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name != commandContainer && c.State.Terminated == nil
	})
}
