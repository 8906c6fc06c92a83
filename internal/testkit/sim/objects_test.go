package sim

import (
	corev1 "k8s.io/api/core/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// The objects of the semantics.

func configMap() *corev1.ConfigMap { return &corev1.ConfigMap{Data: map[string]string{"k": "v"}} }

func data(value string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) { c.Data = map[string]string{"k": value} }
}

func anyAt() *atv1alpha1.At { return anAt() }

func aPod() *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}

func gates(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.SchedulingGates = nil
		for _, name := range names {
			p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
		}
	}
}

func podPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func prefers(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 1, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}},
		}}}}
	}
}

func deadline(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &seconds }
}
