package pool

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/operators/memcached/objects"
)

// This file is about memory that grows while a server runs: the container gets more
// first, then memcached gets a new limit, of items or, restarted in place, of connections.

// canGrow says whether a pod can get from the memory that it has to that of the
// template while it runs. A container that has more than it needs keeps it, and one that
// has enough, by a limit of the user's own for example, need not be resized.
func canGrow(seen Observation, pod *corev1.Pod, t objects.PodTemplate) bool {
	switch {
	case !needsMemory(pod, t, objects.MemoryAnnotation) && !needsMemory(pod, t, objects.LimitAnnotation):
		return pod.Annotations[objects.MemoryAnnotation] == t.Annotations[objects.MemoryAnnotation]
	case RequestsEnough(pod, t):
		return !IsPending(pod, corev1.PodReasonInfeasible)
	}
	return seen.Resizes && !isRefused(pod, t)
}

// needsMemory says whether the template has more memory than a pod, as an annotation of
// both says.
func needsMemory(pod *corev1.Pod, t objects.PodTemplate, annotation string) bool {
	has, err := strconv.Atoi(pod.Annotations[annotation])
	if err != nil {
		return false
	}
	wanted, err := strconv.Atoi(t.Annotations[annotation])
	return err == nil && wanted > has
}

// isRefused says whether the node has no room for a larger pod: the API server
// may have refused it at once, or the kubelet later.
func isRefused(pod *corev1.Pod, t objects.PodTemplate) bool {
	if pod.Annotations[objects.RefusedAnnotation] == t.Server().Resources.Limits.Memory().String() {
		return true
	}
	return IsPending(pod, corev1.PodReasonInfeasible)
}

// IsPending says whether the kubelet has not resized a pod yet, for a reason.
func IsPending(pod *corev1.Pod, reason string) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue && c.Reason == reason
	})
}

// HasRoom says whether the container of a server has the memory that the template has.
func HasRoom(seen Observation, pod *corev1.Pod, t objects.PodTemplate) bool {
	if !needsMemory(pod, t, objects.MemoryAnnotation) && !needsMemory(pod, t, objects.LimitAnnotation) {
		return true
	}
	if !RequestsEnough(pod, t) {
		return false
	}
	server := ServerStatus(pod)
	if server.Resources == nil {
		// A kubelet that cannot resize containers does not report what a running one has:
		// it has what the pod was made with.
		return !seen.Resizes || server.State.Running != nil
	}
	has := server.Resources.Limits[corev1.ResourceMemory]
	return has.Cmp(*t.Server().Resources.Limits.Memory()) >= 0
}

// RequestsEnough says whether a pod requests the memory that the template has.
func RequestsEnough(pod *corev1.Pod, t objects.PodTemplate) bool {
	return requestedMemory(pod).Cmp(*t.Server().Resources.Limits.Memory()) >= 0
}

// requestedMemory is the memory that a pod requests for its server.
func requestedMemory(pod *corev1.Pod) *resource.Quantity {
	return podtemplate.Container(&pod.Spec, objects.ServerContainer).Resources.Limits.Memory()
}
