package pods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Obstacle is what keeps a container that waits from being started.
type Obstacle string

// The obstacles. Each lasts until a user acts, or what the node needs is restored.
const (
	// None is of a container that runs or has ended, and of one whose node is just
	// preparing it.
	None Obstacle = ""
	// NoImage: the image cannot be pulled. Its reason and message change with every
	// try.
	NoImage Obstacle = "ImagePullBackOff"
	// NoStart: the container cannot be created or started, for what its message
	// says.
	NoStart Obstacle = "CannotStart"
)

// NoStartReasons are the kubelet's reasons for which a container has the obstacle NoStart.
var NoStartReasons = []string{
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError",
	"PostStartHookError",
}

// ObstacleOf uses the reasons of the kubelet (kubernetes/pkg/kubelet/images and
// pkg/kubelet/kuberuntime). A crash loop is none of them, see [CrashLoop].
func ObstacleOf(c corev1.ContainerStatus) Obstacle {
	if c.State.Waiting == nil {
		return None
	}
	switch c.State.Waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed":
		return NoImage
	}
	if slices.Contains(NoStartReasons, c.State.Waiting.Reason) {
		return NoStart
	}
	return None
}

// Statuses are those of all containers of a pod, as they start: of its own, of a user's, and of those that admission
// has added. Whichever does not start keeps the pod from serving.
func Statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
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
