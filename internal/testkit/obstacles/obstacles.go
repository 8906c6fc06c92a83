// Package obstacles has whatever keeps a pod from starting, for tests of what status says then.
package obstacles

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
)

// Obstacle gives a pod, which has the container, an obstacle, and returns what is to be in status.
type Obstacle func(pod *corev1.Pod, container string) (says []string)

// Of are the obstacles of a pod that was created.
var Of = map[string]Obstacle{
	"no image": func(pod *corev1.Pod, container string) []string {
		return []string{waits(&pod.Status.ContainerStatuses, pod, container, "ErrImagePull", "not found"), "cannot be pulled"}
	},
	"no image of an init container": func(pod *corev1.Pod, container string) []string {
		waits(&pod.Status.ContainerStatuses, pod, container, "PodInitializing", "")
		return []string{waits(&pod.Status.InitContainerStatuses, pod, injected, "ImagePullBackOff", "not found"), "cannot be pulled"}
	},
	"cannot start": func(pod *corev1.Pod, container string) []string {
		const why = `secret "mine" not found`
		waits(&pod.Status.ContainerStatuses, pod, container, "CreateContainerConfigError", why)
		return []string{why}
	},
	SilentNode:  isSilent,
	Unprepared:  isUnprepared,
	"no node":   unschedulable("0/1 nodes are available: 1 Insufficient memory."),
	"no volume": unschedulable("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
	Crashes: crashes(func(pod *corev1.Pod, container string) (*[]corev1.ContainerStatus, string) {
		return &pod.Status.ContainerStatuses, container
	}),
	"an init container crashes": crashes(func(pod *corev1.Pod, container string) (*[]corev1.ContainerStatus, string) {
		waits(&pod.Status.ContainerStatuses, pod, container, "PodInitializing", "")
		return &pod.Status.InitContainerStatuses, injected
	}),
}

// Crashes is the obstacle of a container that ends again and again, which one that is not started again does not have.
const Crashes = "crashes"

// SilentNode is the obstacle of a pod that did serve, on a node that does not answer any more.
const SilentNode = "a silent node"

// isSilent is how Kubernetes' node controller leaves a pod: not ready, and the kubelet's last word is that all is well.
func isSilent(pod *corev1.Pod, container string) []string {
	pod.Spec.NodeName = "lost"
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)},
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
	}
	return []string{`node "lost" has not answered since 2026-01-02T12:00:00Z, and may still run pod ` + pod.Name + ":", "kubectl delete node lost"}
}

// Unprepared is the obstacle of a pod of which a volume cannot be mounted, of an object that operators cannot see.
const Unprepared = "a volume that cannot be mounted"

func isUnprepared(pod *corev1.Pod, container string) []string {
	pod.Spec.NodeName = "n"
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "gone", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}},
	}})
	pod.Status.Phase = corev1.PodPending
	waits(&pod.Status.ContainerStatuses, pod, container, pods.ContainerCreating, "")
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Date(2026, 1, 2, 11, 0, 0, 0, time.UTC)},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
	}
	return []string{`ConfigMap "gone"`, "kubectl describe pod " + pod.Name}
}

// injected is the name of an init container that admission has added.
const injected = "injected"

// ErrQuota is how the API server refuses a pod that the operator creates, and QuotaSays its words.
var ErrQuota = &loop.WriteError{
	Write: loop.Create{Object: &corev1.Pod{}},
	Err:   apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New(QuotaSays)),
}

// QuotaSays are the words of a quota.
const QuotaSays = "exceeded quota: small"

// waits has a container wait, and returns its image. The status has that of the container that ran before.
func waits(list *[]corev1.ContainerStatus, pod *corev1.Pod, container, reason, message string) (image string) {
	if image = pods.ImageOf(pod, container); image == "" {
		image = "none:1"
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: container, Image: image})
	}
	*list = slices.DeleteFunc(*list, func(c corev1.ContainerStatus) bool { return c.Name == container })
	*list = append(*list, corev1.ContainerStatus{
		Name: container, Image: "before:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	})
	return image
}

func unschedulable(why string) Obstacle {
	return func(pod *corev1.Pod, _ string) []string {
		pod.Spec.NodeName, pod.Status.ContainerStatuses = "", nil
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why,
		})
		return []string{"cannot be scheduled", why}
	}
}

func crashes(which func(pod *corev1.Pod, container string) (*[]corev1.ContainerStatus, string)) Obstacle {
	return func(pod *corev1.Pod, container string) []string {
		const words = "address in use"
		list, name := which(pod, container)
		waits(list, pod, name, pods.CrashLoopBackOff, "back-off 10s")
		last := &(*list)[len(*list)-1]
		last.RestartCount = 2
		last.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 71, Message: words}
		return []string{"crash-looping", words}
	}
}
