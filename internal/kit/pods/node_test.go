package pods

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// aPodOn is a pod that its node calls ready.
func aPodOn(node, name string, change ...func(ready, containers *corev1.PodCondition)) corev1.Pod {
	pod := corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
	pod.Name = name
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(-time.Hour)},
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: at(-time.Hour)},
	}
	for _, change := range change {
		change(&pod.Status.Conditions[0], &pod.Status.Conditions[1])
	}
	return pod
}

// silent is what the node controller writes after a time, and nothing else.
func silent(after time.Duration) func(ready, _ *corev1.PodCondition) {
	return func(ready, _ *corev1.PodCondition) {
		ready.Status, ready.LastTransitionTime = corev1.ConditionFalse, at(after)
	}
}

// TestASilentNode: what only the node controller writes is told from what a kubelet writes.
func TestASilentNode(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(ready, containers *corev1.PodCondition)
		want   bool
	}{
		"as the node controller leaves it": {silent(0), true},
		"ready":                            {func(_, _ *corev1.PodCondition) {}, false},
		"a container is not ready": {func(ready, containers *corev1.PodCondition) {
			ready.Status, ready.Reason = corev1.ConditionFalse, "ContainersNotReady"
			containers.Status, containers.Reason = corev1.ConditionFalse, "ContainersNotReady"
		}, false},
		"a readiness gate is closed": {func(ready, _ *corev1.PodCondition) {
			ready.Status, ready.Reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
		}, false},
		"it has ended": {func(ready, containers *corev1.PodCondition) {
			ready.Status, ready.Reason = corev1.ConditionFalse, "PodCompleted"
			containers.Status, containers.Reason = corev1.ConditionFalse, "PodCompleted"
		}, false},
	} {
		if got := OnSilentNodes(aPodOn("n1", "web", tc.change)); (got != "") != tc.want {
			t.Errorf("%s: %q, want words: %v", name, got, tc.want)
		}
	}
	if got := OnSilentNodes(corev1.Pod{}); got != "" {
		t.Errorf("a pod without a status: %q", got)
	}
}

// TestSilentNodesAreNamed: each node once, with its pods and the time at which it was noticed first.
func TestSilentNodesAreNamed(t *testing.T) {
	got := OnSilentNodes(aPodOn("n2", "e", silent(0)), aPodOn("n1", "d", silent(time.Second)), aPodOn("n1", "a", silent(0)), aPodOn("n3", "ready"),
		aPodOn("n1", "c", silent(0)), aPodOn("n1", "b", silent(0)))
	want := `node "n1" has not answered since 2026-01-02T12:00:00Z, and may still run pods a, b, c and 1 more: bring it back or, if it is gone for good, kubectl delete node n1` +
		`; node "n2" has not answered since 2026-01-02T12:00:00Z, and may still run pod e: bring it back or, if it is gone for good, kubectl delete node n2`
	if got != want {
		t.Errorf("%s", strings.ReplaceAll(got, "; ", "\n"))
	}
}
