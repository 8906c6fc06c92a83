package pods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// IsGated says whether a scheduling gate still keeps a pod from being scheduled.
func IsGated(pod *corev1.Pod, gate string) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == gate })
}

// Ungated is the spec of a strategic merge patch that removes a scheduling gate. It changes nothing
// if the gate is not there any more.
func Ungated(gate string) map[string]any {
	return map[string]any{"schedulingGates": []any{map[string]any{"$patch": "delete", "name": gate}}}
}
