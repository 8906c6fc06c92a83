//go:build e2e

package at

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/test/e2e"
)

// TestAtPrepared: a prepared pod waits behind its gate, and is the one that runs when it is due; unless the At is
// changed before, which is prepared again. An exit code that is final ends the run.
func TestAtPrepared(t *testing.T) {
	ns := e2e.NewNamespace(t)
	waiting := func(name string) *atv1alpha1.At {
		t.Helper()
		at := newAt(ns, name, func(s *atv1alpha1.AtSpec) {
			s.Schedule, s.Command, s.OutputBytes = time.Now().Add(40*time.Second).UTC().Format(time.RFC3339), new("echo first; exit 64"), 100
			s.BackoffLimit, s.FinalExitCodes = 3, []int32{64}
		})
		create(t, at)
		return at
	}
	prepared := func(at *atv1alpha1.At) types.UID {
		t.Helper()
		at = waitFor(t, at, atv1alpha1.Pending, "Prepared", time.Minute)
		var pod corev1.Pod
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(at), &pod); err != nil {
			t.Fatal(err)
		}
		if pod.UID != at.Status.PreparedPodUID || len(pod.Spec.SchedulingGates) == 0 {
			t.Fatalf("the pod %s has the gates %v, and the prepared one is %s", pod.UID, pod.Spec.SchedulingGates, at.Status.PreparedPodUID)
		}
		return pod.UID
	}
	edited, left := waiting("edited"), waiting("left-alone")
	stale, gated := prepared(edited), prepared(left)
	if err := c.Patch(context.Background(), edited, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"command":"echo second"}}`))); err != nil {
		t.Fatal(err)
	}

	left = waitFor(t, left, atv1alpha1.Failed, "CommandFailed", time.Minute)
	if left.Status.PodUID != gated || left.Status.Attempts != 1 {
		t.Errorf("the pod %s ran, in %d attempts; the prepared one was %s", left.Status.PodUID, left.Status.Attempts, gated)
	}
	wantExitCode(64)(t, left)
	edited = waitFor(t, edited, atv1alpha1.Done, "Completed", time.Minute)
	if edited.Status.PodUID == stale {
		t.Error("the pod of before the change ran")
	}
	wantOutput("second\n")(t, edited)
	t.Logf("they began %s and %s after their time", left.Status.Lateness.Duration, edited.Status.Lateness.Duration)
}
