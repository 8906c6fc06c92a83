package memcached

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
)

// TestPullTrouble: a pull that fails is reported, stops nothing, and is tried again.
func TestPullTrouble(t *testing.T) {
	old, now := aPool(warm, version("1.6.18"), size(1)), aPool(warm, size(1))
	failed := func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 127}}}}
	}
	longAgo := func(pod *corev1.Pod) { pod.CreationTimestamp.Time = noon.Add(-time.Minute) }
	for name, tc := range map[string]struct {
		pull    seenOption
		message string
		removed int
		wake    time.Duration
	}{
		"cannot be pulled": {aPull(now, cannotPull), "image memcached:1.6.38 cannot be pulled on node n", 0, 0},
		"does not start":   {aPull(now, failed), "image memcached:1.6.38 does not start on node n (it needs memcached and /bin/sh): exit code 127", 0, 20 * time.Second},
		"tried again":      {aPull(now, failed, longAgo), "image memcached:1.6.38 does not start on node n (it needs memcached and /bin/sh): exit code 127", 1, 0},
	} {
		next, err := decide(now, somethingSeen(aStatefulSet(now), aServer(old, 0), tc.pull))
		if err != nil {
			t.Fatal(err)
		}
		if next.problem == nil || next.problem.message != tc.message || !next.problem.passes {
			t.Errorf("%s: %+v", name, next.problem)
		}
		if next.change != nil || next.upgrade.Server != "" || verbs(next, loop.Delete) != tc.removed || next.wakeAfter != tc.wake {
			t.Errorf("%s: change %v, %d removed, wake after %v", name, next.change, verbs(next, loop.Delete), next.wakeAfter)
		}
	}
}

// TestPullTroubleStays: the problem of a pull is reported until the next try has shown
// something else.
func TestPullTroubleStays(t *testing.T) {
	old, now := aPool(warm, version("1.6.18"), size(1)), aPool(warm, size(1))
	const failed = "image memcached:1.6.38 does not start on node n (it needs memcached and /bin/sh): exit code 127"
	here := &v1alpha1.FailedPull{Image: "memcached:1.6.38", Node: "n", Message: "exit code 127"}
	elsewhere := &v1alpha1.FailedPull{Image: "memcached:1.6.38", Node: "n2", Message: "exit code 127"}
	for name, tc := range map[string]struct {
		was  *v1alpha1.FailedPull
		pull []seenOption
		want string
	}{
		"it is to be made":    {here, nil, failed},
		"it starts":           {here, []seenOption{aPull(now)}, failed},
		"it cannot be pulled": {here, []seenOption{aPull(now, cannotPull)}, "image memcached:1.6.38 cannot be pulled on node n"},
		"it is there":         {here, []seenOption{aPull(now, pulled(""))}, ""},
		"that was elsewhere":  {elsewhere, []seenOption{aPull(now)}, ""},
		"nothing has failed":  {nil, nil, ""},
	} {
		now.Status.Upgrade = &v1alpha1.UpgradeStatus{FailedPull: tc.was}
		next, err := decide(now, somethingSeen(append(tc.pull, aStatefulSet(now), aServer(old, 0))...))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if next.problem != nil {
			got = next.problem.message
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if kept := next.upgrade.FailedPull != nil; kept != (tc.want == failed) {
			t.Errorf("%s: failedPull in status: %v", name, kept)
		}
	}
}
