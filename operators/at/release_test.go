package at

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// TestOverdue: the API server is read before the clock ends an attempt, and only then.
func TestOverdue(t *testing.T) {
	pending := spec(func(s *atv1alpha1.AtSpec) { s.PendingDeadlineSeconds = new(int64(60)) })
	active := spec(func(s *atv1alpha1.AtSpec) { s.ActiveDeadlineSeconds = new(int64(60)) })
	for name, tc := range map[string]struct {
		option atOption
		pod    *corev1.Pod
		after  time.Duration
		want   bool
	}{
		"no deadline":                   {func(*atv1alpha1.At) {}, aPod(ungated), time.Hour, false},
		"waits in time":                 {pending, aPod(ungated), time.Minute - 1, false},
		"waits too long":                {pending, aPod(ungated), time.Minute, true},
		"runs":                          {pending, aPod(podRunning), time.Hour, false},
		"has ended":                     {active, aPod(exited(0, "Completed")), time.Hour, false},
		"too long, without a node":      {active, aPod(ungated), time.Minute, true},
		"too long, the node may end it": {active, aPod(podRunning), time.Minute, false},
		"too long, the node is silent":  {active, aPod(podRunning), time.Minute + killGrace, true},
		"let run long after the claim":  {active, aPod(podRunning, released(noon.Add(time.Minute))), time.Minute + killGrace, false},
	} {
		if got := isOverdue(anAt(claimedAt(noon), tc.option), tc.pod, noon.Add(tc.after)); got != tc.want {
			t.Errorf("%s: overdue %v, want %v", name, got, tc.want)
		}
	}
}

// TestGatePatch: the patch that removes a gate tests that the pod is not withdrawn,
// also of a pod that has lost its annotations.
func TestGatePatch(t *testing.T) {
	want := `[{"op":"test","path":"/metadata/uid","value":"pod-uid"},{"op":"test","path":"/metadata/annotations/at.example.com~1withdrawn","value":null},` +
		`{"op":"test","path":"/spec/schedulingGates/0/name","value":"at.example.com/claim"},{"op":"remove","path":"/spec/schedulingGates/0"},` +
		`{"op":"add","path":"/metadata/annotations/at.example.com~1released","value":"2026-01-02T12:00:00.000000Z"}]`
	if got := string(gatePatch(aPod(), 0, noon)); got != want {
		t.Errorf("gatePatch() =\n%s\nwant\n%s", got, want)
	}
	bare := aPod(func(p *corev1.Pod) { p.Annotations = nil })
	want = `[{"op":"test","path":"/metadata/uid","value":"pod-uid"},{"op":"test","path":"/metadata/annotations","value":null},` +
		`{"op":"test","path":"/spec/schedulingGates/0/name","value":"at.example.com/claim"},{"op":"remove","path":"/spec/schedulingGates/0"},` +
		`{"op":"add","path":"/metadata/annotations","value":{"at.example.com/released":"2026-01-02T12:00:00.000000Z"}}]`
	if got := string(gatePatch(bare, 0, noon)); got != want {
		t.Errorf("gatePatch() of a pod without annotations =\n%s\nwant\n%s", got, want)
	}
}
