package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestCannotStart: the words are the same while the kubelet tries again and again.
func TestCannotStart(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "mesh", Image: "mesh:1"}}, Containers: []corev1.Container{{Name: "web", Image: "web:1"}},
	}}
	const noImage, noMesh, noStart = `the image "web:1" cannot be pulled`, `the image "mesh:1" cannot be pulled`, `container "web" cannot start: no such Secret`
	for name, tc := range map[string]struct{ container, waits, reason, words string }{
		"it runs":             {"web", "", "", ""},
		"the node is at it":   {"web", "ContainerCreating", "", ""},
		"a crash loop":        {"web", CrashLoopBackOff, "", ""},
		"a pull fails":        {"web", "ErrImagePull", NoImage, noImage},
		"until the next pull": {"web", "ImagePullBackOff", NoImage, noImage},
		"an init container":   {"mesh", "InvalidImageName", NoImage, noMesh},
		"a Secret is missing": {"web", "CreateContainerConfigError", "CreateContainerConfigError", noStart},
		"a hook fails":        {"web", "PostStartHookError", "PostStartHookError", noStart},
	} {
		c := corev1.ContainerStatus{Name: tc.container, Image: "before:1"}
		if tc.waits != "" {
			c.State.Waiting = &corev1.ContainerStateWaiting{Reason: tc.waits, Message: "no such\nSecret"}
		}
		if reason, words := CannotStart(pod, c); reason != tc.reason || words != tc.words {
			t.Errorf("%s: %q, %q; want %q, %q", name, reason, words, tc.reason, tc.words)
		}
	}
}

// TestUnschedulable: what the scheduler said of a gate that is gone does not count.
func TestUnschedulable(t *testing.T) {
	gates := []corev1.PodSchedulingGate{{Name: "queue"}}
	for name, tc := range map[string]struct {
		gates  []corev1.PodSchedulingGate
		is     corev1.ConditionStatus
		reason string
		want   string
	}{
		"no node":      {nil, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "cannot be scheduled: no room"},
		"a gate":       {gates, corev1.ConditionFalse, corev1.PodReasonSchedulingGated, "cannot be scheduled: no room"},
		"no gate more": {nil, corev1.ConditionFalse, corev1.PodReasonSchedulingGated, ""},
		"it has one":   {nil, corev1.ConditionTrue, "", ""},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: tc.gates}}
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "other"},
			{Type: corev1.PodScheduled, Status: tc.is, Reason: tc.reason, Message: "no\nroom"},
		}
		if got := Unschedulable(pod); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
