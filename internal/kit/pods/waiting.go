package pods

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/kit/status"
)

// NoImage is the reason of a container whose image cannot be pulled.
const NoImage = "ImagePullBackOff"

// NoStartReasons are the kubelet's reasons for a container that cannot be created or started.
var NoStartReasons = []string{
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError",
	"PostStartHookError",
}

// CannotStart says what keeps a container that waits from being started: [NoImage] or one of [NoStartReasons], and in
// words that do not change with every try what that is. Each lasts until a user acts, or what the node needs is restored.
// Both are empty for a container that runs or has ended, and for one whose node is just preparing it. A crash loop is
// none of them, see [CrashLoop].
//
// It uses the reasons of the kubelet (kubernetes/pkg/kubelet/images and pkg/kubelet/kuberuntime).
func CannotStart(pod *corev1.Pod, c corev1.ContainerStatus) (reason, words string) {
	wait := c.State.Waiting
	if wait == nil {
		return "", ""
	}
	switch wait.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed":
		return NoImage, fmt.Sprintf("the image %q cannot be pulled", ImageOf(pod, c.Name))
	}
	if slices.Contains(NoStartReasons, wait.Reason) {
		return wait.Reason, fmt.Sprintf("container %q cannot start: %s", c.Name, status.Shortened(wait.Message))
	}
	return "", ""
}

// Unschedulable says, in the scheduler's words, that a pod cannot be scheduled; empty if it can, or has been. The word
// of a scheduling gate may be older than the removal of the last one.
func Unschedulable(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		isOld := c.Reason == corev1.PodReasonSchedulingGated && len(pod.Spec.SchedulingGates) == 0
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && !isOld {
			return "cannot be scheduled: " + status.Shortened(c.Message)
		}
	}
	return ""
}

// Statuses are those of all containers of a pod, as they start: of its own, of a user's, and of those that admission
// has added. Whichever does not start keeps the pod from serving.
func Statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// Status is that of the container of a name; empty if there is none yet.
func Status(pod *corev1.Pod, container string) corev1.ContainerStatus {
	for _, c := range Statuses(pod) {
		if c.Name == container {
			return c
		}
	}
	return corev1.ContainerStatus{}
}

// IsOver says whether nothing will run in a pod any more: it was evicted, for example.
func IsOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// IsReady says whether a pod's node finds that it serves.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// ImageOf is the image that a pod requests for a container. Its status has the image of the one that ran before.
func ImageOf(pod *corev1.Pod, container string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}
