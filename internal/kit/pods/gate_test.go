package pods

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// TestGate: one gate goes and the other stays, also when the patch is sent twice.
func TestGate(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "ours"}, {Name: "another's"}}}}
	if !IsGated(pod, "ours") || !IsGated(pod, "another's") || IsGated(pod, "nobody's") {
		t.Error("the gates are not seen")
	}
	patch, err := json.Marshal(map[string]any{"spec": Ungated("ours")})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		before, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		*pod = corev1.Pod{}
		if err := json.Unmarshal(after, pod); err != nil {
			t.Fatal(err)
		}
		if IsGated(pod, "ours") || !IsGated(pod, "another's") {
			t.Errorf("the gates are %v", pod.Spec.SchedulingGates)
		}
	}
}
