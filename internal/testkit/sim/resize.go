package sim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeMemory is how much memory the only node has for pods.
var nodeMemory = resource.MustParse("1Gi")

// resized is a pod with the resources that another version has: whatever else that
// changes is dropped.
func resized(old, obj client.Object) client.Object {
	before, isPod := old.(*corev1.Pod)
	wanted, _ := obj.(*corev1.Pod)
	if !isPod {
		return obj
	}
	pod := before.DeepCopy()
	for i := range pod.Spec.Containers {
		for _, c := range wanted.Spec.Containers {
			if c.Name == pod.Spec.Containers[i].Name {
				pod.Spec.Containers[i].Resources, pod.Spec.Containers[i].ResizePolicy = c.Resources, c.ResizePolicy
			}
		}
	}
	pod.ManagedFields = wanted.ManagedFields
	return pod
}

// mayResize refuses what the API server refuses: to resize a pod whose kubelet reports no
// resources, as one that cannot do it, and to give it more than the node has.
func (s *Server) mayResize(k *Kind, old, pod *corev1.Pod) error {
	for _, c := range old.Status.ContainerStatuses {
		if c.State.Running != nil && c.Resources == nil {
			return apierrors.NewInvalid(k.GroupKind(), pod.Name, field.ErrorList{
				field.Forbidden(field.NewPath("spec"), "Pod running on node without support for resize"),
			})
		}
	}
	requested := resource.Quantity{}
	for _, c := range pod.Spec.Containers {
		requested.Add(*c.Resources.Requests.Memory())
	}
	if requested.Cmp(nodeMemory) > 0 {
		return apierrors.NewForbidden(k.groupResource(), pod.Name, fmt.Errorf("node didn't have enough capacity: memory, requested: %d, capacity: %d", requested.Value(), nodeMemory.Value()))
	}
	return nil
}
