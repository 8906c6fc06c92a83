package at

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/status"
)

// This file reads pods: what has become of an attempt.

// result is how an attempt ended.
type result struct {
	succeeded       bool
	exitCode        *int32
	finished        time.Time // zero if the pod does not tell
	reason, message string
	output          string
	// final is true when no further attempt may follow.
	final bool
}

// commandStatus is the status of the command's container, nil if the kubelet
// has not reported any.
func commandStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == commandContainer {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

func terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	if command := commandStatus(pod); command != nil {
		return command.State.Terminated
	}
	return nil
}

// hasOutput says whether the command has ended, and has been there to write
// something: of a container that never was, or that the node has lost, the
// kubelet tells an end without an ID.
func hasOutput(pod *corev1.Pod) bool {
	end := terminated(pod)
	return end != nil && end.ContainerID != ""
}

func phaseIsFinal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ended says whether the command will not run, or go on running, in pod.
// Sidecars may still do.
func ended(pod *corev1.Pod) bool { return terminated(pod) != nil || phaseIsFinal(pod) }

// started says whether the command has started in pod.
func started(pod *corev1.Pod) bool {
	command := commandStatus(pod)
	return command != nil && (command.State.Running != nil || command.State.Terminated != nil)
}

// endOf is when the command ended, or otherwise if the pod does not tell.
func endOf(pod *corev1.Pod, otherwise time.Time) time.Time {
	if end := terminated(pod); end != nil && !end.FinishedAt.IsZero() {
		return end.FinishedAt.Time
	}
	return otherwise
}

// resultOf is how the attempt of an ended pod ended.
func resultOf(pod *corev1.Pod, output string) result {
	r := result{output: output, finished: endOf(pod, time.Time{})}
	end := terminated(pod)
	// The kubelet's word for a container that it does not find: its exit code
	// is made up.
	lost := end != nil && end.Reason == "ContainerStatusUnknown"
	if end != nil && !lost {
		r.exitCode = &end.ExitCode
	}
	disruption := disruptionOf(pod)
	switch {
	case end != nil && end.ExitCode == 0:
		r.succeeded = true
		r.reason, r.message = reasonCompleted, "The command ended with exit code 0"
	case pod.Status.Reason == reasonDeadline:
		r.final = true
		r.reason, r.message = reasonDeadline, "The run was ended because it took longer than activeDeadlineSeconds allows"
	case disruption != nil:
		r.reason, r.message = camelCase(disruption.Reason), "The pod was ended from outside: "+disruption.Message
	case pod.Status.Reason != "": // Evicted, OutOfcpu, NodeLost
		r.reason, r.message = camelCase(pod.Status.Reason), "The pod was ended from outside: "+pod.Status.Message
	case end == nil:
		r.reason, r.message = reasonPodFailed, "The pod failed before its command started: "+initFailure(pod)
	case lost:
		r.reason, r.message = reasonUnknown, "The node has lost the command's container: whether it ran, and how it ended, is not known"
	case end.Reason == "OOMKilled":
		r.reason, r.message = "OOMKilled", "The command was killed because it used more memory than resources.limits.memory allows"
	case end.Reason == "StartError", end.Reason == "ContainerCannotRun":
		r.reason, r.message = end.Reason, "The command could not be started: "+end.Message
	case pod.DeletionTimestamp != nil:
		r.reason, r.message = reasonPodDeleted, fmt.Sprintf("The pod was deleted while the command ran, which ended with exit code %d", end.ExitCode)
	default:
		r.reason, r.message = reasonCommandFailed, fmt.Sprintf("The command ended with exit code %d", end.ExitCode)
	}
	r.message = status.Shortened(r.message)
	return r
}

// disruptionOf is the condition that tells why the cluster ended a pod.
func disruptionOf(pod *corev1.Pod) *corev1.PodCondition {
	for i, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// initFailure tells which init container failed a pod.
func initFailure(pod *corev1.Pod) string {
	for _, init := range pod.Status.InitContainerStatuses {
		if end := init.State.Terminated; end != nil && end.ExitCode != 0 {
			return fmt.Sprintf("init container %q ended with exit code %d", init.Name, end.ExitCode)
		}
	}
	return "the kubelet gave no reason"
}

// waitsFor says what keeps the command of a claimed pod from starting. The
// kubelet alternates between the error and the wait for the next try; both
// give the same words, so that status does not change with every turn.
func waitsFor(pod *corev1.Pod) (reason, message string) {
	if !pod.DeletionTimestamp.IsZero() {
		return reasonPodDeleted, "The pod is being deleted"
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		wait := container.State.Waiting
		if wait == nil {
			continue
		}
		switch wait.Reason {
		case "ErrImagePull", "ImagePullBackOff":
			return "ImagePullBackOff", fmt.Sprintf("The image %q of container %q cannot be pulled: correct it in a new At, or make it available", container.Image, container.Name)
		case "PodInitializing", "ContainerCreating", "":
			continue
		case "CreateContainerConfigError", "InvalidImageName", "CreateContainerError", "RunContainerError":
			return wait.Reason, status.Shortened(fmt.Sprintf("Container %q cannot start: %s", container.Name, wait.Message))
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			if condition.Reason == corev1.PodReasonSchedulingGated {
				return reasonGated, "The pod waits behind a scheduling gate that somebody else has to open"
			}
			return reasonUnschedulable, "No node takes the pod: " + status.Shortened(condition.Message)
		}
	}
	if pod.Spec.NodeName == "" {
		return reasonUnschedulable, "No node takes the pod: the scheduler has not looked at it yet"
	}
	return reasonStarting, "The node is preparing the pod"
}

// pendingTooLong is the result of an attempt that could not start in time.
func pendingTooLong(at *atv1alpha1.At, why, message string) result {
	return result{
		reason:  reasonPendingDeadline,
		message: fmt.Sprintf("The command did not start within pendingDeadlineSeconds (%d s): %s: %s", *at.Spec.PendingDeadlineSeconds, why, message),
	}
}

// gateIndex is where our gate stands among the scheduling gates of a pod, and
// below zero if it is open.
func gateIndex(pod *corev1.Pod) int {
	return slices.IndexFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == gateName })
}

// sidecarsRun says whether ordinary containers other than the command's still
// run. Restartable init containers are ended by the kubelet.
func sidecarsRun(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name != commandContainer && c.State.Terminated == nil
	})
}
