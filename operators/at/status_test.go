package at

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
)

func micro(t time.Time) *metav1.MicroTime { return &metav1.MicroTime{Time: t} }

func TestSummarizeClaim(t *testing.T) {
	at := anAt(spec(func(s *atv1alpha1.AtSpec) { s.Schedule = "2026-01-02T12:00:00.000000001Z" }))
	seen := observation{now: noon.Add(12345678 * time.Nanosecond), pod: aPod()}
	got := summarize(at, seen, decide(at, seen), nil)

	want := atv1alpha1.AtStatus{
		Phase: atv1alpha1.Running, Reason: "Running", ObservedGeneration: 1,
		ScheduledTime: micro(noon.Add(time.Microsecond)), // rounded up
		StartTime:     micro(noon.Add(12346 * time.Microsecond)),
		Lateness:      &metav1.Duration{Duration: 12345 * time.Microsecond},
		Attempts:      1, PodName: "sample", PodUID: "pod-uid",
	}
	got.Conditions = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summarize() (-want +got):\n%s", diff)
	}
}

// TestSummarizePrepared: from its pod to its claim, status has the pod's UID in a field of its own, and nothing of an
// attempt.
func TestSummarizePrepared(t *testing.T) {
	at := anAt()
	seen := observation{now: noon.Add(-time.Second), pod: aPod()}
	want := atv1alpha1.AtStatus{
		Phase: atv1alpha1.Pending, Reason: "Prepared", ObservedGeneration: 1, ScheduledTime: micro(noon), PreparedPodUID: "pod-uid",
	}
	check := func(when string) {
		t.Helper()
		at.Status = summarize(at, seen, decide(at, seen), nil)
		got := *at.Status.DeepCopy()
		got.Conditions = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("before its time")
	seen.now = noon.Add(time.Second)
	check("while its gate is removed")

	at.Generation, at.Spec.Schedule = 2, noon.Add(time.Hour).Format(time.RFC3339) // too late
	seen = observation{now: noon.Add(2 * time.Second), pod: aPod(ungated, released(noon.Add(time.Second)))}
	want.Phase, want.Reason, want.ObservedGeneration, want.PreparedPodUID = atv1alpha1.Running, "ChangedTooLate", 2, ""
	want.Attempts, want.PodName, want.PodUID = 1, "sample", "pod-uid"
	want.StartTime, want.Lateness = micro(noon.Add(time.Second)), &metav1.Duration{Duration: time.Second}
	check("with its gate removed")
	want.Phase, want.Reason = atv1alpha1.Done, "Completed"
	want.CompletionTime, want.ExitCode = &metav1.Time{Time: noon.Add(time.Minute)}, new(int32(0))
	seen.pod = aPod(exited(0, "Completed"), released(noon.Add(time.Second)))
	check("done")
}

// TestSummarizeWithdrawn: only with the mark on the pod is it not prepared any more.
func TestSummarizeWithdrawn(t *testing.T) {
	at := anAt(preparedPod, func(at *atv1alpha1.At) { at.Generation++ })
	seen := observation{now: noon.Add(-time.Second), pod: aPod()}
	if got := summarize(at, seen, decide(at, seen), nil); got.PreparedPodUID != "pod-uid" || got.DiscardedPodUID != "" {
		t.Errorf("without the mark: %+v", got)
	}
	seen.pod = aPod(withdrawn("Scheduled"))
	if got := summarize(at, seen, decide(at, seen), nil); got.PreparedPodUID != "" || got.DiscardedPodUID != "pod-uid" ||
		got.Reason != "Scheduled" || got.ObservedGeneration != 2 {
		t.Errorf("with the mark: %+v", got)
	}
}

// TestPreparingCostsNothing: if the pod cannot be created before its time, status is as if that had not been tried.
func TestPreparingCostsNothing(t *testing.T) {
	at := anAt()
	early := observation{now: noon.Add(-time.Hour)}
	scheduled := summarize(at, early, decide(at, early), nil)
	at.Status = scheduled
	seen := observation{now: noon.Add(-time.Second)}
	for _, failure := range []error{
		nil,
		apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "sample", errors.New("exceeded quota: q")),
		&apply.ConflictError{Kind: "Pod", Name: "sample"},
	} {
		next := decide(at, seen)
		if diff := cmp.Diff(scheduled, summarize(at, seen, next, failure)); next.action != createEarly || diff != "" {
			t.Errorf("%s, %v (-want +got):\n%s", next.action, failure, diff)
		}
	}
}

// TestStartIsNotBeforeItsTime: the clock that showed that it was due may have been set back before the note was written.
func TestStartIsNotBeforeItsTime(t *testing.T) {
	at := anAt(preparedPod)
	seen := observation{now: noon.Add(-10 * time.Second), pod: aPod(ungated, released(noon.Add(-10*time.Second)))}
	if got := summarize(at, seen, decide(at, seen), nil); !got.StartTime.Time.Equal(noon) || got.Lateness.Duration != 0 {
		t.Errorf("started at %v, %v late", got.StartTime, got.Lateness)
	}
}

// TestRefusedAfterALateChange: the run has not begun after all, so it is as if the change had come in time.
func TestRefusedAfterALateChange(t *testing.T) {
	at := anAt(claimedAt(noon), func(at *atv1alpha1.At) { at.Generation, at.Status.ScheduledTime = 2, micro(noon) })
	at.Spec.Schedule = noon.Add(time.Hour).Format(time.RFC3339)
	seen := observation{now: noon.Add(time.Second), pod: aPod(refusedAt(noon))}
	got := summarize(at, seen, decide(at, seen), nil)
	if got.Phase != atv1alpha1.Pending || got.Attempts != 0 || got.PodUID != "" || got.DiscardedPodUID != "pod-uid" ||
		got.StartTime != nil || got.PendingSince != nil || got.NextAttemptTime != nil {
		t.Errorf("refused: %+v", got)
	}
	at.Status = got
	next := decide(at, seen)
	if got = summarize(at, seen, next, nil); next.action != discard || got.Reason != "Scheduled" || !got.ScheduledTime.Time.Equal(noon.Add(time.Hour)) {
		t.Errorf("then: %s, %+v", next.action, got)
	}
}

func TestSummarizeFurtherClaimKeepsTheStart(t *testing.T) {
	at := anAt(backingOff(noon.Add(time.Minute)))
	at.Status.ExitCode, at.Status.CompletionTime = new(int32(1)), &metav1.Time{Time: noon.Add(time.Second)}
	seen := observation{now: noon.Add(time.Minute), pod: aPod(func(p *corev1.Pod) { p.Name, p.UID = "sample-2-x", "second" })}
	got := summarize(at, seen, decide(at, seen), nil)

	if !got.StartTime.Time.Equal(noon) || got.Attempts != 2 || got.PodName != "sample-2-x" || got.PodUID != "second" ||
		got.NextAttemptTime != nil || got.ExitCode != nil || got.CompletionTime != nil {
		t.Errorf("summarize() = %+v", got)
	}
}

// An At that is restored from a backup with its status stays as it was, at the generation that it has now.
func TestRestoredWithItsStatus(t *testing.T) {
	for phase, want := range map[atv1alpha1.Phase]atv1alpha1.Phase{
		atv1alpha1.Done: atv1alpha1.Done, atv1alpha1.Missed: atv1alpha1.Missed, atv1alpha1.Running: atv1alpha1.Failed,
	} {
		at := anAt(finishedAt(phase, noon))
		at.UID, at.Status.ObservedGeneration = "another", 3
		at.Status.Conditions = []metav1.Condition{{Type: "Ready", ObservedGeneration: 3}}
		seen := observation{now: noon.Add(time.Hour)}
		next := decide(at, seen)
		got := summarize(at, seen, next, nil)
		if next.action != hold || got.Phase != want || got.ObservedGeneration != 1 || got.Conditions[0].ObservedGeneration != 1 {
			t.Errorf("%s: action %q, status %+v", phase, next.action, got)
		}
	}
}

// Each outcome says what it is, in words and in conditions that tools read.
func TestSummarizeTellsWhatHappened(t *testing.T) {
	gr := schema.GroupResource{Resource: "pods"}
	cases := map[string]struct {
		at       *atv1alpha1.At
		seen     observation
		failure  error
		phase    atv1alpha1.Phase
		ready    metav1.ConditionStatus
		extra    string // the condition besides Ready and Complete
		reason   string
		message  string
		exitCode *int32
	}{
		"scheduled": {
			at: anAt(), seen: observation{now: noon.Add(-time.Hour)},
			phase: atv1alpha1.Pending, ready: metav1.ConditionTrue, reason: "Scheduled", message: "It runs at 2026-01-02T12:00:00Z",
		},
		"scheduled, and deleted later": {
			at: anAt(spec(func(s *atv1alpha1.AtSpec) {
				s.TTLSecondsAfterFinished, s.StartingDeadlineSeconds = new(int64(60)), new(int64(61))
			})),
			seen:  observation{now: noon.Add(-time.Hour)},
			phase: atv1alpha1.Pending, ready: metav1.ConditionTrue, reason: "Scheduled", message: "It runs at 2026-01-02T12:00:00Z. It is deleted 60 s after its end " +
				"(ttlSecondsAfterFinished), and runs again if a tool then creates it again, from Git for example: startingDeadlineSeconds of at most 60 prevents that",
		},
		"scheduled in a window, and deleted later": {
			at: anAt(spec(func(s *atv1alpha1.AtSpec) {
				s.WindowSeconds, s.TTLSecondsAfterFinished, s.StartingDeadlineSeconds = 600, new(int64(660)), new(int64(61))
			})),
			seen:  observation{now: noon.Add(-time.Hour)},
			phase: atv1alpha1.Pending, ready: metav1.ConditionTrue, reason: "Scheduled", message: "It runs at 2026-01-02T12:01:28.439Z. It is deleted 660 s after its end " +
				"(ttlSecondsAfterFinished), and runs again if a tool then creates it again, from Git for example: startingDeadlineSeconds of at most 60 prevents that",
		},
		"scheduled in a window, and deleted within it": {
			at: anAt(spec(func(s *atv1alpha1.AtSpec) {
				s.WindowSeconds, s.TTLSecondsAfterFinished, s.StartingDeadlineSeconds = 600, new(int64(600)), new(int64(1))
			})),
			seen:  observation{now: noon.Add(-time.Hour)},
			phase: atv1alpha1.Pending, ready: metav1.ConditionTrue, reason: "Scheduled", message: "It runs at 2026-01-02T12:01:28.439Z. It is deleted 600 s after its end " +
				"(ttlSecondsAfterFinished), and runs again if a tool then creates it again, from Git for example: a ttlSecondsAfterFinished that is longer than " +
				"windowSeconds (600), with a startingDeadlineSeconds of at most the difference, prevents that",
		},
		"scheduled, deleted later, and too late then": {
			at: anAt(spec(func(s *atv1alpha1.AtSpec) {
				s.TTLSecondsAfterFinished, s.StartingDeadlineSeconds = new(int64(60)), new(int64(60))
			})),
			seen:  observation{now: noon.Add(-time.Hour)},
			phase: atv1alpha1.Pending, ready: metav1.ConditionTrue, reason: "Scheduled", message: "It runs at 2026-01-02T12:00:00Z",
		},
		"prepared": {
			at: anAt(), seen: observation{now: noon.Add(-time.Second), pod: aPod()},
			phase: atv1alpha1.Pending, ready: metav1.ConditionTrue, reason: "Prepared",
			message: "It runs at 2026-01-02T12:00:00Z, and its pod waits behind its scheduling gate",
		},
		"prepared, and its gate may not be removed": {
			at: anAt(preparedPod), seen: observation{now: noon, pod: aPod()}, failure: apierrors.NewForbidden(gr, "sample", errors.New("policy p denied it")),
			phase: atv1alpha1.Pending, ready: metav1.ConditionFalse, extra: "Reconciling", reason: "PodRefused",
			message: `The scheduling gate of the pod cannot be removed: pods "sample" is forbidden: policy p denied it`,
		},
		"prepared, and deleted by somebody": {
			at: anAt(preparedPod), seen: observation{now: noon.Add(-time.Second)},
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "ResultUnknown",
			message: "The pod was deleted before its result was stored: whether the command ran, and how it ended, is not known",
		},
		"changed too late": {
			at:    anAt(preparedPod, func(at *atv1alpha1.At) { at.Generation++ }),
			seen:  observation{now: noon, pod: aPod(ungated, released(noon))},
			phase: atv1alpha1.Running, ready: metav1.ConditionFalse, extra: "Reconciling", reason: "ChangedTooLate",
			message: "The command is running or about to. The last change of the spec came when the run had begun, and has no effect",
		},
		"changed too late, and done": {
			at:    anAt(claimedAt(noon), func(at *atv1alpha1.At) { at.Generation++ }),
			seen:  observation{now: noon, pod: aPod(exited(0, "Completed"))},
			phase: atv1alpha1.Done, ready: metav1.ConditionTrue, reason: "Completed", exitCode: new(int32(0)),
			message: "The command ended with exit code 0. The last change of the spec came when the run had begun, and has no effect",
		},
		"unknown zone": {
			at:    anAt(spec(func(s *atv1alpha1.AtSpec) { s.Schedule, s.TimeZone = "2026-01-02T12:00:00", new("Mars/X") })),
			phase: atv1alpha1.Pending, ready: metav1.ConditionFalse, extra: "Stalled", reason: "InvalidSchedule",
			message: `timeZone "Mars/X" is not known to this operator: unknown time zone Mars/X`,
		},
		"foreign pod": {
			at: anAt(), seen: observation{now: noon}, failure: &apply.ConflictError{Kind: "Pod", Name: "sample"},
			phase: atv1alpha1.Pending, ready: metav1.ConditionFalse, extra: "Reconciling", reason: "PodConflict",
			message: `Pod "sample" exists and is not owned by this object: delete or rename it`,
		},
		"quota": {
			at: anAt(), seen: observation{now: noon}, failure: apierrors.NewForbidden(gr, "sample", errors.New("exceeded quota: q")),
			phase: atv1alpha1.Pending, ready: metav1.ConditionFalse, extra: "Reconciling", reason: "PodRefused",
			message: `The pod cannot be created: pods "sample" is forbidden: exceeded quota: q`,
		},
		"done": {
			at: anAt(claimedAt(noon)), seen: observation{now: noon, pod: aPod(exited(0, "Completed"))},
			phase: atv1alpha1.Done, ready: metav1.ConditionTrue, reason: "Completed",
			message: "The command ended with exit code 0", exitCode: new(int32(0)),
		},
		"failed": {
			at: anAt(claimedAt(noon)), seen: observation{now: noon, pod: aPod(exited(3, "Error"))},
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "CommandFailed",
			message: "The command ended with exit code 3", exitCode: new(int32(3)),
		},
		"failed, tried again": {
			at:    anAt(claimedAt(noon), spec(func(s *atv1alpha1.AtSpec) { s.BackoffLimit = 2 })),
			seen:  observation{now: noon, pod: aPod(exited(3, "Error"))},
			phase: atv1alpha1.Running, ready: metav1.ConditionFalse, extra: "Reconciling", reason: "CommandFailed",
			message: "The command ended with exit code 3. Attempt 2 of 3 follows at 2026-01-02T12:00:10Z", exitCode: new(int32(3)),
		},
		"failed with a final exit code": {
			at:    anAt(claimedAt(noon), spec(func(s *atv1alpha1.AtSpec) { s.BackoffLimit, s.FinalExitCodes = 2, []int32{3} })),
			seen:  observation{now: noon, pod: aPod(exited(3, "Error"))},
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "CommandFailed",
			message: "The command ended with exit code 3. This was attempt 1 of 3; no other follows", exitCode: new(int32(3)),
		},
		"out of memory": {
			at: anAt(claimedAt(noon)), seen: observation{now: noon, pod: aPod(exited(137, "OOMKilled"))},
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "OOMKilled",
			message: "The command was killed because it used more memory than resources.limits.memory allows", exitCode: new(int32(137)),
		},
		"evicted": {
			at: anAt(claimedAt(noon)), seen: observation{now: noon, pod: aPod(onNode, func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}
			})},
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "Evicted",
			message: "The pod was ended from outside: low on memory",
		},
		"node gone": {
			at: anAt(claimedAt(noon)), seen: observation{now: noon, pod: aPod(onNode, func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{{
					Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: "node not found"}}}
			})},
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "DeletionByPodGC",
			message: "The pod was ended from outside: node not found",
		},
		"missed because of the quota": {
			at: anAt(spec(func(s *atv1alpha1.AtSpec) { s.StartingDeadlineSeconds = new(int64(10)) }), func(at *atv1alpha1.At) {
				at.Status.Problem = "The pod cannot be created: quota"
			}),
			seen:  observation{now: noon.Add(time.Hour)},
			phase: atv1alpha1.Missed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "StartingDeadlineExceeded",
			message: "It did not start by 2026-01-02T12:00:10Z, which is startingDeadlineSeconds (10 s) after its time: The pod cannot be created: quota. The operator found it so 1h0m0s after its time",
		},
		"claimed, and let run by nobody": {
			at:    anAt(claimedAt(noon), spec(func(s *atv1alpha1.AtSpec) { s.StartingDeadlineSeconds = new(int64(10)) })),
			seen:  observation{now: noon.Add(time.Hour), pod: aPod()},
			phase: atv1alpha1.Missed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "StartingDeadlineExceeded",
			message: "It did not start by 2026-01-02T12:00:10Z, which is startingDeadlineSeconds (10 s) after its time: no operator was there to remove the scheduling gate of its pod. The operator found it so 1h0m0s after its time",
		},
		"claimed, and not let run because it was refused": {
			at: anAt(claimedAt(noon), spec(func(s *atv1alpha1.AtSpec) { s.StartingDeadlineSeconds = new(int64(10)) }), func(at *atv1alpha1.At) {
				at.Status.Reason, at.Status.Problem = "PodRefused", "The scheduling gate of the pod cannot be removed: policy"
			}),
			seen:  observation{now: noon.Add(time.Hour), pod: aPod()},
			phase: atv1alpha1.Missed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "StartingDeadlineExceeded",
			message: "It did not start by 2026-01-02T12:00:10Z, which is startingDeadlineSeconds (10 s) after its time: The scheduling gate of the pod cannot be removed: policy. The operator found it so 1h0m0s after its time",
		},
		"missed because no operator ran": {
			at:    anAt(spec(func(s *atv1alpha1.AtSpec) { s.StartingDeadlineSeconds = new(int64(10)) })),
			seen:  observation{now: noon.Add(time.Hour)},
			phase: atv1alpha1.Missed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "StartingDeadlineExceeded",
			message: "It did not start by 2026-01-02T12:00:10Z, which is startingDeadlineSeconds (10 s) after its time: no operator was running, or it was too busy. The operator found it so 1h0m0s after its time",
		},
		"missed because it was created too late": {
			at: anAt(spec(func(s *atv1alpha1.AtSpec) { s.StartingDeadlineSeconds = new(int64(10)) }), func(at *atv1alpha1.At) {
				at.CreationTimestamp = metav1.Time{Time: noon.Add(time.Minute)}
			}),
			seen:  observation{now: noon.Add(time.Hour)},
			phase: atv1alpha1.Missed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "StartingDeadlineExceeded",
			message: "It did not start by 2026-01-02T12:00:10Z, which is startingDeadlineSeconds (10 s) after its time: the At was created later than that, at 2026-01-02T12:01:00Z. The operator found it so 1h0m0s after its time",
		},
		"missed because its deadline is shorter than runs usually need": {
			at:    anAt(spec(func(s *atv1alpha1.AtSpec) { s.StartingDeadlineSeconds = new(int64(1)) })),
			seen:  observation{now: noon.Add(1234567 * time.Microsecond), usualLateness: 1100 * time.Millisecond},
			phase: atv1alpha1.Missed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "StartingDeadlineExceeded",
			message: "It did not start by 2026-01-02T12:00:01Z, which is startingDeadlineSeconds (1 s) after its time: no operator was running, or it was too busy. " +
				"The operator found it so 1.235s after its time. The deadline is shorter than the usual lateness of the latest runs, which is 1.1s",
		},
		"stopping": {
			at:    anAt(claimedAt(noon), spec(func(s *atv1alpha1.AtSpec) { s.ActiveDeadlineSeconds = new(int64(60)) })),
			seen:  observation{now: noon.Add(time.Minute + problem), pod: aPod(podRunning, startedOnNode(noon, 60), graceOf(300))},
			phase: atv1alpha1.Running, ready: metav1.ConditionFalse, extra: "Reconciling", reason: "Stopping",
			message: "The run took longer than activeDeadlineSeconds (60 s) and is being stopped: its command gets a signal, and is killed if it has not ended 300 s later (terminationGracePeriodSeconds of its pod)",
		},
		"not stopped by a silent kubelet": {
			at:    anAt(claimedAt(noon), spec(func(s *atv1alpha1.AtSpec) { s.ActiveDeadlineSeconds = new(int64(60)) })),
			seen:  observation{now: noon.Add(time.Minute + killGrace), pod: aPod(podRunning, startedOnNode(noon, 60))},
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "DeadlineExceeded",
			message: `The run took longer than activeDeadlineSeconds (60 s); node "node" has not reported that the command has ended`,
		},
		"refused by its node": {
			at: anAt(claimedAt(noon)), seen: observation{now: noon, pod: aPod(refusedAt(noon))},
			phase: atv1alpha1.Running, ready: metav1.ConditionFalse, extra: "Reconciling", reason: "NodeRefused",
			message: `Node "node" has refused the pod: OutOfcpu: Node didn't have enough resource: cpu, requested: 100, used: 950, capacity: 1000. Attempt 1 of 1 follows at 2026-01-02T12:00:01Z`,
		},
		"refused until it is too late": {
			at:    anAt(refusedSince(noon, noon.Add(time.Minute)), spec(func(s *atv1alpha1.AtSpec) { s.StartingDeadlineSeconds = new(int64(10)) })),
			seen:  observation{now: noon.Add(11 * time.Second)},
			phase: atv1alpha1.Missed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "StartingDeadlineExceeded",
			message: "It did not start by 2026-01-02T12:00:10Z, which is startingDeadlineSeconds (10 s) after its time: it is full. The operator found it so 11s after its time",
		},
		"refused until its pending deadline": {
			at:    anAt(refusedSince(noon, noon.Add(time.Hour)), spec(func(s *atv1alpha1.AtSpec) { s.PendingDeadlineSeconds = new(int64(60)) })),
			seen:  observation{now: noon.Add(time.Minute)},
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "PendingDeadlineExceeded",
			message: "The command did not start within pendingDeadlineSeconds (60 s): NodeRefused: it is full",
		},
		"failed for the last time, with last words": {
			at: anAt(claimedAt(noon), spec(func(s *atv1alpha1.AtSpec) { s.BackoffLimit = 1 }), func(at *atv1alpha1.At) { at.Status.Attempts = 2 }),
			seen: observation{now: noon, pod: aPod(exited(3, "Error"), func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State.Terminated.Message = "reading\nno such file\n"
			})},
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "CommandFailed", exitCode: new(int32(3)),
			message: "The command ended with exit code 3: reading no such file. This was attempt 2 of 2",
		},
		"gone, and not tried again": {
			at:    anAt(claimedAt(noon), spec(func(s *atv1alpha1.AtSpec) { s.BackoffLimit = 2 })),
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "ResultUnknown",
			message: "The pod was deleted before its result was stored: whether the command ran, and how it ended, is not known. This was attempt 1 of 3; no other follows",
		},
		"the gate may not be opened": {
			at: anAt(claimedAt(noon)), seen: observation{now: noon, pod: aPod()}, failure: apierrors.NewForbidden(gr, "sample", errors.New("policy p denied it")),
			phase: atv1alpha1.Running, ready: metav1.ConditionFalse, extra: "Reconciling", reason: "PodRefused",
			message: `The scheduling gate of the pod cannot be removed: pods "sample" is forbidden: policy p denied it`,
		},
		"the predecessor's pod is in the way": {
			at: anAt(), seen: observation{now: noon, pod: aPod(), blocked: true},
			phase: atv1alpha1.Pending, ready: metav1.ConditionFalse, extra: "Reconciling", reason: "PodConflict",
			message: `Pod "sample" still belongs to a deleted object of the same name and is about to be removed`,
		},
		"the node lost the container": {
			at: anAt(claimedAt(noon)), seen: observation{now: noon, pod: aPod(exited(137, "ContainerStatusUnknown"))},
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "ResultUnknown",
			message: "The node has lost the command's container: whether the command ran, and how it ended, is not known",
		},
		"image missing until the pending deadline": {
			at:    anAt(claimedAt(noon), spec(func(s *atv1alpha1.AtSpec) { s.PendingDeadlineSeconds = new(int64(60)) })),
			seen:  observation{now: noon.Add(time.Minute), pod: aPod(waitingFor("ErrImagePull"))},
			phase: atv1alpha1.Failed, ready: metav1.ConditionFalse, extra: "Stalled", reason: "PendingDeadlineExceeded",
			message: `The command did not start within pendingDeadlineSeconds (60 s): ImagePullBackOff: The command cannot start: the image "img" cannot be pulled: correct it in a new At, or make it available`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.seen.now.IsZero() {
				tc.seen.now = noon
			}
			got := summarize(tc.at, tc.seen, decide(tc.at, tc.seen), tc.failure)
			if got.Phase != tc.phase || got.Reason != tc.reason {
				t.Errorf("phase %s, reason %s, want %s, %s", got.Phase, got.Reason, tc.phase, tc.reason)
			}
			if diff := cmp.Diff(tc.exitCode, got.ExitCode); diff != "" {
				t.Errorf("exit code (-want +got):\n%s", diff)
			}
			if missed := got.Phase == atv1alpha1.Missed; missed && (got.StartTime != nil || got.Attempts != 0 || got.PodName != "") {
				t.Errorf("MISSED, and status has a start: %+v", got)
			}
			if got.Phase.Finished() && got.CompletionTime == nil {
				t.Error("finished without a completion time")
			}
			ready := meta.FindStatusCondition(got.Conditions, "Ready")
			if ready == nil || ready.Status != tc.ready || ready.Reason != tc.reason || ready.Message != tc.message {
				t.Errorf("Ready = %+v\nwant %s, %s, %s", ready, tc.ready, tc.reason, tc.message)
			}
			if complete := meta.IsStatusConditionTrue(got.Conditions, "Complete"); complete != (tc.phase == atv1alpha1.Done) {
				t.Errorf("Complete = %v in phase %s", complete, got.Phase)
			}
			if failed := meta.IsStatusConditionTrue(got.Conditions, "Failed"); failed != (tc.phase == atv1alpha1.Failed || tc.phase == atv1alpha1.Missed) {
				t.Errorf("Failed = %v in phase %s", failed, got.Phase)
			}
			if complete, failed := meta.FindStatusCondition(got.Conditions, "Complete"), meta.FindStatusCondition(got.Conditions, "Failed"); (complete == nil) != (failed == nil) {
				t.Errorf("Complete = %+v, Failed = %+v: one without the other", complete, failed)
			}
			for _, condition := range got.Conditions {
				if !slices.Contains([]string{"Ready", "Complete", "Failed", tc.extra}, condition.Type) {
					t.Errorf("condition %s is there, want only %q besides Ready, Complete and Failed", condition.Type, tc.extra)
				}
			}
			if tc.extra != "" && !meta.IsStatusConditionTrue(got.Conditions, tc.extra) {
				t.Errorf("condition %s is not True", tc.extra)
			}
			// Looking again without a change writes nothing.
			at := tc.at.DeepCopy()
			at.Status = got
			if tc.failure == nil {
				seen := tc.seen
				if got.NextAttemptTime != nil { // the pod is that of the last attempt
					seen.last, seen.pod = seen.pod, nil
				}
				again := summarize(at, seen, decide(at, seen), nil)
				if diff := cmp.Diff(got, again); diff != "" {
					t.Errorf("a second look changes status (-first +second):\n%s", diff)
				}
			}
		})
	}
}

// TestStartTimeIsThatOfTheGate: from the result on, the start is when the gate was
// removed, and not when the pod was claimed.
func TestStartTimeIsThatOfTheGate(t *testing.T) {
	late := noon.Add(26 * time.Second)
	at := anAt(claimedAt(noon), func(at *atv1alpha1.At) { at.Status.ScheduledTime = micro(noon); at.Status.Reason = "Running" })
	running := observation{now: late, pod: aPod(podRunning, released(late))}
	if got := summarize(at, running, decide(at, running), nil); !got.StartTime.Time.Equal(noon) {
		t.Errorf("running: started %v, which costs a write", got.StartTime)
	}
	ended := observation{now: late, pod: aPod(exited(0, "Completed"), released(late))}
	got := summarize(at, ended, decide(at, ended), nil)
	if !got.StartTime.Time.Equal(late) || got.Lateness.Duration != 26*time.Second {
		t.Errorf("done: started %v, %v late", got.StartTime, got.Lateness)
	}
	further := anAt(backingOff(noon), func(at *atv1alpha1.At) { at.Status.Attempts, at.Status.NextAttemptTime = 2, nil })
	if got := summarize(further, ended, decide(further, ended), nil); !got.StartTime.Time.Equal(noon) {
		t.Errorf("a further attempt: started %v, want the first one's start", got.StartTime)
	}
}

// TestRefusedIsNoAttempt: status is as if the attempt had not been made, but for what says that it is made again.
func TestRefusedIsNoAttempt(t *testing.T) {
	at := anAt(claimedAt(noon), func(at *atv1alpha1.At) { at.Status.ScheduledTime, at.Status.Lateness = micro(noon), late(0) })
	seen := observation{now: noon.Add(time.Second), pod: aPod(refusedAt(noon))}
	got := summarize(at, seen, decide(at, seen), nil)
	if got.Attempts != 0 || got.PodName != "" || got.PodUID != "" || got.StartTime != nil || got.Lateness != nil || got.CompletionTime != nil ||
		got.DiscardedPodUID != "pod-uid" || !got.PendingSince.Time.Equal(noon) || !got.NextAttemptTime.Time.Equal(noon.Add(2*time.Second)) || got.Problem == "" {
		t.Errorf("refused: %+v", got)
	}
	at.Status = got
	seen = observation{now: noon.Add(2 * time.Second), pod: aPod(func(p *corev1.Pod) { p.UID = "another" })}
	got = summarize(at, seen, decide(at, seen), nil)
	if got.Attempts != 1 || got.PodName != "sample" || got.PodUID != "another" || !got.StartTime.Time.Equal(noon.Add(2*time.Second)) ||
		got.Lateness.Duration != 2*time.Second || got.NextAttemptTime != nil || got.Problem != "" {
		t.Errorf("made again: %+v", got)
	}
	at.Status = got
	seen.pod = aPod(exited(0, "Completed"), func(p *corev1.Pod) { p.UID = "another" })
	if got = summarize(at, seen, decide(at, seen), nil); got.Phase != atv1alpha1.Done || got.Attempts != 1 || got.PendingSince != nil {
		t.Errorf("done: %+v", got)
	}

	at = anAt(refusedSince(noon, noon.Add(time.Hour)), spec(func(s *atv1alpha1.AtSpec) { s.PendingDeadlineSeconds, s.BackoffLimit = new(int64(60)), 1 }))
	seen = observation{now: noon.Add(time.Minute)}
	if got = summarize(at, seen, decide(at, seen), nil); got.Attempts != 1 || got.PendingSince != nil || got.NextAttemptTime == nil || !got.StartTime.Time.Equal(noon) {
		t.Errorf("refused until its deadline: %+v", got)
	}
	at.Spec.ActiveDeadlineSeconds, at.Status = new(int64(600)), got
	if next := decide(at, observation{now: noon.Add(2 * time.Minute)}); next.action != create {
		t.Errorf("the next attempt: %+v", next)
	}
}

// TestRejectsBeforeTheEnd: the pod of a further attempt that was not claimed is deleted before a result is said, after
// which no pod of its name is looked for.
func TestRejectsBeforeTheEnd(t *testing.T) {
	at := anAt(backingOff(noon), spec(func(s *atv1alpha1.AtSpec) { s.ActiveDeadlineSeconds, s.BackoffLimit = new(int64(1)), 1 }))
	seen := observation{now: noon.Add(time.Hour), pod: aPod(func(p *corev1.Pod) { p.UID, p.Name = "second", "sample-2" })}
	next := decide(at, seen)
	got := summarize(at, seen, next, nil)
	if next.action != reject || got.Phase != atv1alpha1.Running || got.DiscardedPodUID != "second" {
		t.Fatalf("%v, %+v", next.action, got)
	}
	at.Status = got
	if next = decide(at, seen); next.action != discard || summarize(at, seen, next, nil).Phase != atv1alpha1.Failed {
		t.Errorf("%v, %+v", next.action, next.news)
	}
}

func TestTransientTroubleIsNotTold(t *testing.T) {
	for _, failure := range []error{
		apierrors.NewTooManyRequests("slow down", 1), apierrors.NewInternalError(errors.New("etcd")),
		apierrors.NewServiceUnavailable("starting"), errors.New("connection refused"),
	} {
		at, seen := anAt(), observation{now: noon}
		if got := summarize(at, seen, decide(at, seen), failure); !cmp.Equal(got, at.Status) {
			t.Errorf("%v: status became %+v", failure, got)
		}
	}
}

func TestForeignWordsAreMadeFit(t *testing.T) {
	for in, want := range map[string]string{"Evicted": "Evicted", "node lost": "Nodelost", "": "PodFailed", "3x": "PodFailed", "a-b": "Ab"} {
		if got := camelCase(in); got != want {
			t.Errorf("camelCase(%q) = %q, want %q", in, got, want)
		}
	}
}
