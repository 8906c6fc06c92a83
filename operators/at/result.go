package at

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/at/starter"
)

// This file reads how an attempt ended from its pod.

// result is how an attempt ended.
type result struct {
	succeeded       bool
	exitCode        *int32
	finished        time.Time // zero if the pod does not say
	reason, message string
	output          string
	// final is true when no further attempt may follow.
	final bool
}

// resultOf is how the attempt of an ended pod ended. A command that gets a signal to stop
// may exit with any code, also with 0, so what ended it from outside comes before its
// exit code, unless the command had ended by then.
func resultOf(pod *corev1.Pod, output string) result {
	r := result{output: output, finished: endOf(pod, time.Time{})}
	end := terminated(pod)
	lost := isMadeUp(end)
	if end != nil && !lost {
		r.exitCode = &end.ExitCode
	}
	success := end != nil && end.ExitCode == 0 && !lost
	disruption, podReason := disruptionOf(pod), podReasonOf(pod)
	switch {
	case pod.Status.Reason == reasonDeadline && isStopped(pod) && isMarked(pod):
		r.final = true
		r.reason, r.message = reasonWithdrawn, "The command began while its pod was withdrawn, and was ended: it may have done a part of its work"
		if lost {
			r.reason, r.message = reasonUnknown, "The pod was withdrawn when its command was to begin: whether it began is not known"
		}
	case pod.Status.Reason == reasonDeadline && goesOnAt(pod, podDeadline(pod)):
		r.final = true
		r.reason, r.message = reasonDeadline, "The run was ended because it took longer than activeDeadlineSeconds allows"
	case disruption != nil:
		r.reason, r.message = camelCase(disruption.Reason), "The pod was ended from outside: "+disruption.Message
	case success && isDeletedFirst(pod):
		r.reason, r.message = reasonPodDeleted, "The pod was deleted while the command ran, which then ended with exit code 0"
	case success:
		r.succeeded = true
		r.reason, r.message = reasonCompleted, "The command ended with exit code 0"
	case isRejection(pod):
		r.final = true
		r.reason, r.message = reasonUnknown, nodeRefuses(pod)+": whether the command had started before is not known"
	case podReason != "": // Evicted, NodeLost
		r.reason, r.message = camelCase(podReason), "The pod was ended from outside: "+pod.Status.Message
	case end == nil && started(pod):
		r.reason, r.message = reasonUnknown, "The pod failed while the command ran: how it ended is not known"
	case end == nil:
		r.reason, r.message = reasonPodFailed, "The pod failed before its command started: "+initFailure(pod)
	case lost:
		r.reason, r.message = reasonUnknown, "The node has lost the command's container: whether the command ran, and how it ended, is not known"
	case end.Reason == "OOMKilled":
		r.reason, r.message = "OOMKilled", "The command was killed because it used more memory than resources.limits.memory allows"
	case isStartError(end):
		r.reason, r.message = end.Reason, "The command could not be started: "+end.Message
	case strings.HasPrefix(end.Message, starter.NotStarted):
		r.reason, r.message = "StartError", "The command could not be started: "+strings.TrimPrefix(end.Message, starter.NotStarted)
	case isDeletedFirst(pod):
		r.reason, r.message = reasonPodDeleted, fmt.Sprintf("The pod was deleted while the command ran, which ended with exit code %d", end.ExitCode)
	default:
		r.reason, r.message = reasonCommandFailed, fmt.Sprintf("The command ended with exit code %d", end.ExitCode)+lastWords(end.Message)
	}
	if success || lost || end == nil && mayHaveRun(pod) {
		r.final = true
	}
	r.message = status.Shortened(r.message)
	return r
}

// isMadeUp says whether the node reports an end of the command that it has not seen. Kubelet
// and runtime write exit codes of their own then: 137 for a container that the kubelet does
// not find, and 255 for one whose process was gone when the runtime came back, as after a
// restart of the node. Both have a reason that says so. An older runtime has no time of such
// an end, which is 1970 in Kubernetes. No runtime makes up a success.
func isMadeUp(end *corev1.ContainerStateTerminated) bool {
	if end == nil {
		return false
	}
	switch end.Reason {
	case "ContainerStatusUnknown", "Unknown":
		return true
	case "", "Error":
		return end.ExitCode != 0 && end.FinishedAt.Unix() <= 0
	}
	return false
}

const (
	// arrivalTime is how long after its arrival on a node a pod may be seen as refused on arrival.
	// A kubelet cannot have started its command, ended, and started again by then.
	arrivalTime = 5 * time.Second
	// bindingTime is how long after it got its node. A kubelet whose first reports were lost, and
	// that was restarted, tells a later arrival.
	bindingTime = 10 * time.Second
)

// hasNotStarted says whether a pod is over and its command has certainly never started.
//
// A kubelet that has no room for a pod, for example, rejects it when it arrives, with its
// status.startTime. One that was restarted checks its running pods again, rejects with the
// same words, and clears what it had reported of their containers; the start time is that of
// long ago then. And a critical pod may push aside one that has not started.
func hasNotStarted(pod *corev1.Pod, seen observation) bool {
	switch {
	case pod.Status.Phase != corev1.PodFailed || !pod.DeletionTimestamp.IsZero():
		return false
	case isRejection(pod):
		arrived := pod.Status.StartTime
		return arrived != nil && len(pods.Statuses(pod)) == 0 && seen.now.Sub(arrived.Time).Abs() < arrivalTime &&
			(seen.hasNodeSince.IsZero() || seen.now.Sub(seen.hasNodeSince) < bindingTime)
	case pod.Status.Reason == "Preempting":
		command := pods.Status(pod, commandContainer)
		return command.State.Waiting != nil && command.ContainerID == "" && command.LastTerminationState.Terminated == nil
	}
	return false
}

// isRejection says whether a pod is over because the kubelet has rejected it.
func isRejection(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && strings.HasPrefix(pod.Status.Message, "Pod was rejected: ")
}

// nodeRefuses is what there is to say of a pod that its node has refused.
func nodeRefuses(pod *corev1.Pod) string {
	why := strings.TrimPrefix(pod.Status.Message, "Pod was rejected: ")
	return status.Shortened(fmt.Sprintf("Node %q has refused the pod: %s: %s", pod.Spec.NodeName, pod.Status.Reason, strings.TrimSuffix(strings.TrimSpace(why), ".")))
}

// mayHaveRun says whether the command of a pod that reports no end of it may have run: it
// had started, or the node that would report it is gone.
func mayHaveRun(pod *corev1.Pod) bool {
	disruption := disruptionOf(pod)
	return started(pod) || disruption != nil && disruption.Reason == "DeletionByPodGC"
}

// goesOnAt says whether the command had not ended before an instant. Kubernetes'
// times have whole seconds.
func goesOnAt(pod *corev1.Pod, instant time.Time) bool {
	end := terminated(pod)
	return end == nil || end.FinishedAt.Unix() <= 0 || instant.IsZero() || !end.FinishedAt.Time.Before(instant.Truncate(time.Second))
}

// podDeadline is when the kubelet ends a pod, zero if the pod does not say.
func podDeadline(pod *corev1.Pod) time.Time {
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Add(seconds(*pod.Spec.ActiveDeadlineSeconds))
}

// isEnding says whether the kubelet ends a pod at its deadline: the command has ended
// since, and the pod reports why when its sidecars have, too.
func isEnding(pod *corev1.Pod) bool {
	deadline := podDeadline(pod)
	return terminated(pod) != nil && !pods.IsOver(pod) && !deadline.IsZero() && goesOnAt(pod, deadline)
}

// isDeletedFirst says whether a pod was deleted before its command ended.
func isDeletedFirst(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp.IsZero() {
		return false
	}
	deleted := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		deleted = deleted.Add(-seconds(*grace))
	}
	return goesOnAt(pod, deleted)
}

// disruptionOf is the condition that says why the cluster ended a pod before its command
// had ended.
func disruptionOf(pod *corev1.Pod) *corev1.PodCondition {
	condition := disruptionCondition(pod)
	if condition == nil || pod.DeletionTimestamp.IsZero() && pod.Status.Phase != corev1.PodFailed ||
		!goesOnAt(pod, condition.LastTransitionTime.Time) {
		return nil
	}
	return condition
}

func disruptionCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// podReasonOf is the kubelet's reason for which it ended a pod, unless that came
// after the end of the command, for sidecars that ran on.
func podReasonOf(pod *corev1.Pod) string {
	if pod.Status.Reason == reasonDeadline || disruptionCondition(pod) != nil && disruptionOf(pod) == nil {
		return ""
	}
	return pod.Status.Reason
}

// initFailure says which init container failed a pod.
func initFailure(pod *corev1.Pod) string {
	for _, init := range pod.Status.InitContainerStatuses {
		if end := init.State.Terminated; end != nil && end.ExitCode != 0 {
			return fmt.Sprintf("init container %q ended with exit code %d", init.Name, end.ExitCode) + lastWords(end.Message)
		}
	}
	return "the kubelet gave no reason"
}

// longestWords bounds, in bytes, what a message takes over from a program.
const longestWords = 300

// lastWords are the last words of a program, from its termination message, to be
// put behind what there is to say of its end.
func lastWords(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if message == "" {
		return ""
	}
	if cut := len(message) - longestWords; cut > 0 {
		for !utf8.RuneStart(message[cut]) {
			cut++
		}
		message = "… " + message[cut:]
	}
	return ": " + message
}
