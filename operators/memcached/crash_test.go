package memcached

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/memcached/objects"
)

// TestCrashLoops: one message at every turn of the loop, with the last words of
// memcached; a requested restart is none.
func TestCrashLoops(t *testing.T) {
	const want = `Server cache-0: container "memcached" is crash-looping: it crashed 3 times, last with exit code 1: Error initializing sasl.`
	mc := aPool(stable, size(1))
	last := &corev1.ContainerStateTerminated{
		ContainerID: "memcached-0-1", ExitCode: 1, Reason: "Error", Message: "Error initializing sasl.\n",
		StartedAt: metav1.Time{Time: noon.Add(-11 * time.Second)}, FinishedAt: metav1.Time{Time: noon.Add(-10 * time.Second)},
	}
	state := func(restarts int32, now corev1.ContainerState, ready bool) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			c := &pod.Status.ContainerStatuses[0]
			c.RestartCount, c.State, c.Ready = restarts, now, ready
			c.LastTerminationState.Terminated = last
			if !ready {
				unready(pod)
			}
		}
	}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: pods.CrashLoopBackOff, Message: "back-off 10s"}}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: noon.Add(-time.Second)}}}
	requested := func(pod *corev1.Pod) { pod.Annotations[objects.ReplacedAnnotation] = "memcached-0-1" }
	requestedAgain := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].ContainerID = "memcached-0-2"
		pod.Annotations[objects.ReplacedAnnotation] = "memcached-0-2"
	}
	for name, tc := range map[string]struct {
		pod    []func(*corev1.Pod)
		reason string
		wakes  bool
	}{
		"ended":                     {pod: []func(*corev1.Pod){state(2, corev1.ContainerState{Terminated: last}, false)}, reason: pods.CrashLoopBackOff},
		"waits":                     {pod: []func(*corev1.Pod){state(2, waits, false)}, reason: pods.CrashLoopBackOff},
		"starts":                    {pod: []func(*corev1.Pod){state(3, runs, false)}, reason: pods.CrashLoopBackOff},
		"is ready for a moment":     {pod: []func(*corev1.Pod){state(3, runs, true)}, reason: pods.CrashLoopBackOff, wakes: true},
		"was asked to end":          {pod: []func(*corev1.Pod){state(3, runs, true), requested}, reason: reasonReady},
		"is asked to end again":     {pod: []func(*corev1.Pod){state(3, runs, true), requestedAgain}, reason: reasonReady},
		"was asked to end, is held": {pod: []func(*corev1.Pod){state(2, waits, false), requested}, reason: reasonUnavailable},
	} {
		seen := somethingSeen(aStatefulSet(mc), aServer(mc, 0, tc.pod...))
		next, err := decide(mc, seen)
		if err != nil {
			t.Fatal(err)
		}
		st := summarize(mc, seen, next, nil)
		ready := st.Conditions[0]
		if ready.Reason != tc.reason || tc.reason == pods.CrashLoopBackOff && ready.Message != want {
			t.Errorf("%s: %s: %s", name, ready.Reason, ready.Message)
		}
		if wakes := next.WakeAfter == time.Minute-time.Second; wakes != tc.wakes {
			t.Errorf("%s: wakes after %v", name, next.WakeAfter)
		}
	}
}
