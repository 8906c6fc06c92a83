package objects

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/etcd/annotation"
)

// NoImage is the image that a pod is to run of which the container is stopped. It is how a container is
// restarted in its pod.
const NoImage = "RESTART"

// ImageIn is the image that a pod is to run: the operator's word, whatever a webhook made of it.
func ImageIn(pod *corev1.Pod) string {
	if image := pod.Annotations[annotation.Image]; image != "" {
		return image
	}
	return ImageOfContainer(pod)
}

// ImageOfContainer is the image that the kubelet runs.
func ImageOfContainer(pod *corev1.Pod) string {
	return pods.ImageOf(pod, ContainerName)
}

// WithImage changes the image of a pod's container, and annotations.
func WithImage(pod *corev1.Pod, part, why, image string, annotations map[string]any) loop.Patch {
	return loop.Patch{
		Object: pod, Part: part, Why: why, IfCurrent: true, Metadata: map[string]any{"annotations": annotations},
		Spec: map[string]any{"containers": []any{map[string]any{"name": ContainerName, "image": image}}},
	}
}

// Stopping changes the image of a pod's container to one that cannot be: the kubelet stops it at once, and
// pulls nothing, because no tag begins with a dash. The rest of the name stays, for those who allow only
// images of certain registries.
func Stopping(pod *corev1.Pod, part, why string, annotations map[string]any) loop.Patch {
	annotations[annotation.Image] = NoImage
	return WithImage(pod, part, why, repositoryIn(ImageOfContainer(pod))+":-"+NoImage, annotations)
}

// IsStopping says whether a container is to be restarted in its pod, and still runs.
func IsStopping(pod *corev1.Pod) bool { return ImageIn(pod) == NoImage && !HasStopped(pod) }

// HasStopped says whether the container has been stopped for [NoImage].
func HasStopped(pod *corev1.Pod) bool {
	return pods.Status(pod, ContainerName).State.Running == nil
}

// repositoryIn is an image without its tag and its digest.
func repositoryIn(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[:colon]
	}
	return image
}

// LacksImage says whether a member does not run because its image cannot be pulled.
func LacksImage(pod *corev1.Pod) bool {
	reason, _ := pods.CannotStart(pod, pods.Status(pod, ContainerName))
	return reason == pods.NoImage
}

// IsEnding says that an object is being deleted.
func IsEnding(obj client.Object) bool { return obj.GetDeletionTimestamp() != nil }

// ImageOf is the image of a version.
func ImageOf(ec *v1beta2.EtcdCluster, version string) string {
	return ec.Spec.Repository + ":v" + version
}
