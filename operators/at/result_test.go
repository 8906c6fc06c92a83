package at

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// endedAt is an end that the node reports with this time.
func endedAt(end time.Time) podOption {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.Time{Time: end}
	}
}

// TestResultOf is about commands that end with exit code 0, which they may because they
// got a signal to stop. They end at noon and a minute.
func TestResultOf(t *testing.T) {
	end := noon.Add(time.Minute)
	ok := exited(0, "Completed")
	cases := map[string]struct {
		pod    *corev1.Pod
		reason string // Completed is success
		final  bool
	}{
		"by itself": {aPod(ok), "Completed", true},
		"at its deadline": {
			aPod(ok, startedOnNode(end.Add(-3*time.Second), 3), podFailed("DeadlineExceeded")), "DeadlineExceeded", true},
		"before a deadline that a sidecar met": {
			aPod(ok, startedOnNode(end.Add(-3*time.Second), 4), podFailed("DeadlineExceeded")), "Completed", true},
		"at a deadline, by a kubelet that does not tell the start": {aPod(ok, podFailed("DeadlineExceeded")), "DeadlineExceeded", true},
		"after the pod was deleted":                                {aPod(ok, deletedAt(end.Add(-time.Second))), "PodDeleted", true},
		"in the second in which the pod was deleted":               {aPod(ok, deletedAt(end)), "PodDeleted", true},
		"before the pod was deleted":                               {aPod(ok, deletedAt(end.Add(time.Second))), "Completed", true},
		"after an eviction":                                        {aPod(ok, deletedAt(end), disrupted("EvictionByEvictionAPI", end.Add(-time.Second))), "EvictionByEvictionAPI", true},
		"after the kubelet's eviction":                             {aPod(ok, disrupted("TerminationByKubelet", end), podFailed("Evicted")), "TerminationByKubelet", true},
		"before the kubelet's eviction":                            {aPod(ok, disrupted("TerminationByKubelet", end.Add(time.Second)), podFailed("Evicted")), "Completed", true},
		"although an eviction was planned":                         {aPod(ok, disrupted("EvictionByEvictionAPI", noon)), "Completed", true},
		"failed at its deadline": {
			aPod(exited(1, "Error"), startedOnNode(end.Add(-3*time.Second), 3), podFailed("DeadlineExceeded")), "DeadlineExceeded", true},
		"failed before a deadline that a sidecar met": {
			aPod(exited(1, "Error"), startedOnNode(end.Add(-3*time.Second), 9), podFailed("DeadlineExceeded")), "CommandFailed", false},
		"failed before the pod was deleted":  {aPod(exited(1, "Error"), deletedAt(end.Add(time.Second))), "CommandFailed", false},
		"failed after the pod was deleted":   {aPod(exited(1, "Error"), deletedAt(end)), "PodDeleted", false},
		"the node lost it":                   {aPod(exited(137, "ContainerStatusUnknown")), "ResultUnknown", true},
		"the runtime lost it":                {aPod(exited(255, "Unknown")), "ResultUnknown", true},
		"an end without a time":              {aPod(exited(255, "Error"), endedAt(time.Time{})), "ResultUnknown", true},
		"an end in 1970":                     {aPod(exited(255, "Error"), endedAt(time.Unix(0, 0))), "ResultUnknown", true},
		"its own exit code 255":              {aPod(exited(255, "Error")), "CommandFailed", false},
		"it could not start, in 1970":        {aPod(exited(128, "StartError"), endedAt(time.Unix(0, 0))), "StartError", false},
		"succeeded, by a node without times": {aPod(ok, endedAt(time.Time{})), "Completed", true},
		"failed while it ran, and no word":   {aPod(podRunning, podFailed("")), "ResultUnknown", true},
		"failed before it started":           {aPod(onNode, podFailed("")), "PodFailed", false},
	}
	for name, tc := range cases {
		got := resultOf(tc.pod, "")
		if got.reason != tc.reason || got.final != tc.final || got.succeeded != (tc.reason == "Completed") {
			t.Errorf("%s: %+v, want %s, final %v", name, got, tc.reason, tc.final)
		}
	}
}

// TestDeadlineWithASidecar: the kubelet reports the pod's reason when all containers have
// ended.
func TestDeadlineWithASidecar(t *testing.T) {
	started := noon.Add(time.Minute - 3*time.Second)
	pod := aPod(exited(0, "Completed"), sidecarRuns, startedOnNode(started, 3))
	if got := decide(anAt(claimedAt(noon)), observation{now: noon.Add(time.Minute), pod: pod}); got.news.result != nil {
		t.Errorf("the command ended at the deadline, its sidecar has not: %+v", got.news)
	}
	pod = aPod(exited(0, "Completed"), sidecarRuns, startedOnNode(started, 4))
	if got := decide(anAt(claimedAt(noon)), observation{now: noon.Add(time.Minute), pod: pod}); got.news.reason != "Completed" {
		t.Errorf("the command ended before the deadline: %+v", got.news)
	}
}

func TestLastWords(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " \n": "", "a\n b\n": ": a b",
	} {
		if got := lastWords(in); got != want {
			t.Errorf("lastWords(%q) = %q, want %q", in, got, want)
		}
	}
	got := lastWords(strings.Repeat("ä", 1000) + "end")
	if len(got) > longestWords+len(": … ") || !strings.HasSuffix(got, "end") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// TestWaitsFor: what status says of a pod does not change with every restart of a
// container, and an old word of the scheduler is not taken for a new one.
func TestWaitsFor(t *testing.T) {
	gated := func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
	}
	last := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: "no such host"}}
	loops := func(now corev1.ContainerState) podOption {
		return func(pod *corev1.Pod) {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", State: now, LastTerminationState: last, RestartCount: 3}}
		}
	}
	const looping = `Container "proxy" is crash-looping (3 restarts): exit code 2: no such host`
	for name, tc := range map[string]struct {
		pod             *corev1.Pod
		reason, message string
	}{
		"our gate was just removed": {aPod(gated, ungated), "Starting", "The pod waits for the scheduler to choose a node"},
		"another gate is there": {
			aPod(gated, func(p *corev1.Pod) { p.Spec.SchedulingGates[0].Name = "example.com/theirs" }), "SchedulingGated",
			`The pod waits behind scheduling gate "example.com/theirs" of the pod template: whoever it is for has to remove it`},
		"a sidecar waits": {aPod(onNode, loops(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}})), "CrashLoopBackOff", looping},
		"a sidecar runs":  {aPod(onNode, loops(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})), "CrashLoopBackOff", looping},
		"a slow node":     {aPod(onNode), "Starting", `Node "node" is preparing the pod: kubectl describe pod sample shows its events`},
	} {
		if reason, message := waitsFor(tc.pod); reason != tc.reason || message != tc.message {
			t.Errorf("%s: %s, %s\nwant %s, %s", name, reason, message, tc.reason, tc.message)
		}
	}
}

// TestArrivals: a node's word that the pod has just arrived does not count for one that the operator has seen there for
// longer, whatever pod the At had before.
func TestArrivals(t *testing.T) {
	var arrivals sightings
	at, before := anAt(claimedAt(noon)), aPod(func(pod *corev1.Pod) { pod.UID = "before" })
	arrivals.since(at, before, noon.Add(-time.Hour))
	for after, want := range map[time.Duration]bool{0: true, bindingTime - 1: true, bindingTime: false} {
		now := noon.Add(after)
		pod := aPod(refusedAt(now))
		if got := hasNotStarted(pod, observation{now: now, pod: pod, hasNodeSince: arrivals.since(at, pod, noon)}); got != want {
			t.Errorf("refused %v after it got its node: %v, want %v", after, got, want)
		}
	}
}
