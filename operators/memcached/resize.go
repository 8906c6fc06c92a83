package memcached

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/podtemplate"
)

// This file is about memory that grows while a server runs: the container gets more
// first, then memcached gets a new limit, of items or, restarted in place, of connections.

// canGrow says whether a pod can get from the memory that it has to that of the
// template while it runs. A container that has more than it needs keeps it, and one that
// has enough, by a limit of the user's own for example, need not be resized.
func canGrow(seen observation, pod *corev1.Pod, t podTemplate) bool {
	switch {
	case !needsMemory(pod, t, memoryAnnotation) && !needsMemory(pod, t, limitAnnotation):
		return pod.Annotations[memoryAnnotation] == t.Annotations[memoryAnnotation]
	case requestsEnough(pod, t):
		return !isPending(pod, corev1.PodReasonInfeasible)
	}
	return seen.resizes && !isRefused(pod, t)
}

// needsMemory says whether the template has more memory than a pod, as an annotation of
// both says.
func needsMemory(pod *corev1.Pod, t podTemplate, annotation string) bool {
	has, err := strconv.Atoi(pod.Annotations[annotation])
	if err != nil {
		return false
	}
	wanted, err := strconv.Atoi(t.Annotations[annotation])
	return err == nil && wanted > has
}

// isRefused says whether the node has no room for a larger pod: the API server
// may have refused it at once, or the kubelet later.
func isRefused(pod *corev1.Pod, t podTemplate) bool {
	if pod.Annotations[refusedAnnotation] == t.server().Resources.Limits.Memory().String() {
		return true
	}
	return isPending(pod, corev1.PodReasonInfeasible)
}

// isPending says whether the kubelet has not resized a pod yet, for a reason.
func isPending(pod *corev1.Pod, reason string) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue && c.Reason == reason
	})
}

// hasRoom says whether the container of a server has the memory that the template has.
func hasRoom(seen observation, pod *corev1.Pod, t podTemplate) bool {
	if !needsMemory(pod, t, memoryAnnotation) && !needsMemory(pod, t, limitAnnotation) {
		return true
	}
	if !requestsEnough(pod, t) {
		return false
	}
	server := serverStatus(pod)
	if server.Resources == nil {
		// A kubelet that cannot resize containers does not report what a running one has:
		// it has what the pod was made with.
		return !seen.resizes || server.State.Running != nil
	}
	has := server.Resources.Limits[corev1.ResourceMemory]
	return has.Cmp(*t.server().Resources.Limits.Memory()) >= 0
}

// requestsEnough says whether a pod requests the memory that the template has.
func requestsEnough(pod *corev1.Pod, t podTemplate) bool {
	return requestedMemory(pod).Cmp(*t.server().Resources.Limits.Memory()) >= 0
}

// requestedMemory is the memory that a pod requests for its server.
func requestedMemory(pod *corev1.Pod) *resource.Quantity {
	return podtemplate.Container(&pod.Spec, serverContainer).Resources.Limits.Memory()
}

// growServer requests the memory that the container of the server lacks whose turn it is, or
// waits for it.
func growServer(_ *v1alpha1.Memcached, v *view) (p plan) {
	pod := v.turn.server
	switch {
	case !v.turn.isDue || hasRoom(v.observation, pod, v.template):
	case !requestsEnough(pod, v.template):
		p.Then = append(p.Then, resized(pod, v.template))
	case isPending(pod, corev1.PodReasonDeferred):
		p.waits = fmt.Sprintf("server %s waits for room on node %s to get more memory", pod.Name, pod.Spec.NodeName)
	default:
		p.waits = fmt.Sprintf("the container of server %s is getting more memory", pod.Name)
	}
	return p
}

// resized gives the container of a server the memory that the template has. It is of the
// subresource, and refused when the pod has changed since it was seen.
func resized(pod *corev1.Pod, t podTemplate) loop.Patch {
	server := t.server().Resources
	size := server.Limits.Memory().String()
	return loop.Patch{
		Object: pod, Part: "resize", Subresource: "resize", Why: "server gets more memory: " + size, IfSame: true,
		Spec: map[string]any{"containers": []any{map[string]any{
			"name": serverContainer, "resources": map[string]any{
				"limits": map[string]any{"memory": size}, "requests": map[string]any{"memory": server.Requests.Memory().String()},
			},
		}}},
		Otherwise: annotate(pod, "refused", refusedAnnotation, size),
	}
}
