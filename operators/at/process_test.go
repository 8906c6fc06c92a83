package at

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/operators/at/starter"
)

func TestDecideAboutProcesses(t *testing.T) {
	suspended := spec(func(s *atv1alpha1.AtSpec) { s.Suspend = true })
	edited := func(at *atv1alpha1.At) { at.Generation++ }
	late := func(at *atv1alpha1.At) { at.Spec.StartingDeadlineSeconds = new(int64(60)) }
	activeFor := spec(func(s *atv1alpha1.AtSpec) { s.ActiveDeadlineSeconds = new(int64(60)) })
	unprepared := func(at *atv1alpha1.At) {
		at.Status.Reason, at.Status.ObservedGeneration = "NotPrepared", 1
	}
	early := noon.Add(-10 * time.Second)
	cases := map[string]struct {
		at   *atv1alpha1.At
		pod  *corev1.Pod
		now  time.Time
		want outline
	}{
		"its time is near: create the pod": {
			at: anAt(process), now: noon.Add(-lead),
			want: outline{action: createEarly, phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon},
		},
		"not to be prepared: wait": {
			at: anAt(spec(func(s *atv1alpha1.AtSpec) { s.Prepare = atv1alpha1.PrepareNone })), now: noon.Add(-lead),
			want: outline{phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon},
		},
		"prepared: open the gate before its time": {
			at: anAt(process, preparedPod), pod: aProcess(gated), now: early,
			want: outline{action: release, phase: atv1alpha1.Pending, reason: "Prepared", wakeAt: noon},
		},
		"prepared, and the clock was set back: it stays gated": {
			at: anAt(process, preparedPod), pod: aProcess(gated), now: noon.Add(-time.Hour),
			want: outline{phase: atv1alpha1.Pending, reason: "Prepared", wakeAt: noon.Add(-lead)},
		},
		"prepared, gated and due: open the gate": {
			at: anAt(process, preparedPod), pod: aProcess(gated), now: noon,
			want: outline{action: release},
		},
		"gated, and the command was changed: withdraw": {
			at: anAt(process, preparedPod, edited), pod: aProcess(gated), now: early,
			want: outline{action: withdraw, reason: "Scheduled", wakeAt: noon},
		},
		"its pod is being started: say nothing for a while": {
			at: anAt(process, preparedPod), pod: aProcess(), now: noon.Add(-25 * time.Second),
			want: outline{phase: atv1alpha1.Pending, reason: "Prepared", wakeAt: noon},
		},
		"the image is not there: that is said before its time": {
			at: anAt(process, preparedPod), pod: aProcess(waitingFor("ImagePullBackOff")), now: early,
			want: outline{phase: atv1alpha1.Pending, reason: "ImagePullBackOff", wakeAt: noon},
		},
		"its node is silent: that is said before its time": {
			at: anAt(process, preparedPod), pod: aProcess(runsSince(early), onSilentNode), now: early,
			want: outline{phase: atv1alpha1.Pending, reason: "NodeNotResponding", wakeAt: noon},
		},
		"it waits": {
			at: anAt(process, preparedPod), pod: aProcess(runsSince(early)), now: early,
			want: outline{phase: atv1alpha1.Pending, reason: "Prepared", wakeAt: noon},
		},
		"it waits, and the clock was set back": {
			at: anAt(process, preparedPod), pod: aProcess(runsSince(early)), now: noon.Add(-time.Hour),
			want: outline{phase: atv1alpha1.Pending, reason: "Prepared", wakeAt: noon},
		},
		"it waits, and it is due: the command has begun": {
			at: anAt(process, preparedPod), pod: aProcess(runsSince(early)), now: noon,
			want: outline{wakeAt: noon.Add(claimAfter)},
		},
		"and a second later it is claimed": {
			at: anAt(process, preparedPod), pod: aProcess(runsSince(early)), now: noon.Add(claimAfter),
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "Running"},
		},
		"it is due, and there is no process yet: the command begins when it is there": {
			at: anAt(process, preparedPod), pod: aProcess(onNode), now: noon,
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "Running"},
		},
		"no operator was there when it was due, and the command has ended": {
			at: anAt(process, preparedPod, edited, late), pod: aProcess(exited(0, "Completed")), now: noon.Add(time.Hour),
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "ChangedTooLate"},
		},
		"the clock of its node is ahead, and the command has ended": {
			at: anAt(process, preparedPod), pod: aProcess(exited(0, "Completed")), now: early,
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "Running"},
		},

		"it waits, and the command was changed: withdraw": {
			at: anAt(process, preparedPod, edited), pod: aProcess(runsSince(early)), now: early,
			want: outline{action: withdraw, reason: "Scheduled", wakeAt: noon},
		},
		"it waits, and is suspended: withdraw": {
			at: anAt(process, preparedPod, edited, suspended), pod: aProcess(runsSince(early)), now: early,
			want: outline{action: withdraw, reason: "Suspended", wakeAt: noon},
		},
		"it has no node, and the command was changed: withdraw": {
			at: anAt(process, preparedPod, edited), pod: aProcess(), now: early,
			want: outline{action: withdraw, reason: "Scheduled", wakeAt: noon},
		},
		"the command was changed after the last call: too late": {
			at: anAt(process, preparedPod, edited), pod: aProcess(runsSince(early)), now: noon.Add(-lastCall),
			want: outline{wakeAt: noon},
		},
		"withdrawn, and it waits: its node ends it": {
			at: anAt(process, preparedPod, edited), pod: aProcess(runsSince(early), withdrawnAs("Scheduled")), now: early,
			want: outline{wakeAt: noon},
		},
		"withdrawn, and it was due meanwhile: it may have begun": {
			at: anAt(process, preparedPod, edited), pod: aProcess(runsSince(early), withdrawnAs("Scheduled")), now: noon.Add(claimAfter),
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "ChangedTooLate"},
		},
		"withdrawn, and it has waited: it is another one's turn": {
			at: anAt(process, preparedPod, edited), pod: aProcess(waited, withdrawnAs("Scheduled")), now: early,
			want: outline{action: reject, phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon},
		},
		"withdrawn without a node: it is another one's turn": {
			at: anAt(process, preparedPod, edited), pod: aProcess(withdrawnAs("Scheduled")), now: noon.Add(time.Second),
			want: outline{action: reject},
		},
		"withdrawn, and its node has not created the container": {
			at: anAt(process, preparedPod, edited, suspended), pod: aProcess(neverMade, withdrawnAs("Suspended")), now: early,
			want: outline{action: reject, phase: atv1alpha1.Pending, reason: "Suspended"},
		},
		"the same, seen when it was due: it may have begun": {
			at: anAt(process, preparedPod, edited), pod: aProcess(neverMade, withdrawnAs("Scheduled")), now: noon,
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "ChangedTooLate"},
		},
		"it was evicted while it waited: prepare it again": {
			at: anAt(process, preparedPod), pod: aProcess(waited, podFailed("Evicted")), now: early,
			want: outline{action: reject, wakeAt: noon},
		},
		"it has waited, and that is seen when it is due: another one": {
			at: anAt(process, preparedPod), pod: aProcess(waited), now: noon.Add(time.Minute),
			want: outline{action: reject},
		},
		"rejected: delete it": {
			at: anAt(process, func(at *atv1alpha1.At) { at.Status.DiscardedPodUID = "pod-uid" }), pod: aProcess(waited), now: early,
			want: outline{action: discard, phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon},
		},
		"its node was restarted while it waited: who knows": {
			at: anAt(process, preparedPod), now: early,
			pod:  aProcess(endedWith(corev1.ContainerStateTerminated{ExitCode: 255, Reason: "Unknown", Message: starter.NotBegun})),
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "Running"},
		},
		"its node has lost it while it waited: who knows": {
			at: anAt(process, preparedPod), now: early,
			pod: aProcess(neverMade, func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "ContainerStatusUnknown"}
			}),
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "Running"},
		},
		"the process is gone: it may have run": {
			at: anAt(process, preparedPod), now: early,
			want: outline{phase: atv1alpha1.Failed, reason: "ResultUnknown"},
		},

		"its node refuses it: without a process, when it is due": {
			at: anAt(process, preparedPod), pod: aProcess(refusedAt(early)), now: early,
			want: outline{action: reject, phase: atv1alpha1.Pending, reason: "NotPrepared", wakeAt: noon},
		},
		"the start program cannot be executed: without it": {
			at: anAt(process, preparedPod), now: early,
			pod:  aProcess(endedWith(corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "permission denied"})),
			want: outline{action: reject, phase: atv1alpha1.Pending, reason: "NotPrepared", wakeAt: noon},
		},
		"the image of the start program is not there: withdraw": {
			at: anAt(process, preparedPod), pod: aProcess(lacksTheImage(startName)), now: early,
			want: outline{action: withdraw, reason: "NotPrepared", wakeAt: noon},
		},
		"withdrawn for that: without it": {
			at: anAt(process, preparedPod), pod: aProcess(lacksTheImage(startName), podFailed("DeadlineExceeded"), withdrawnAs("NotPrepared")), now: early,
			want: outline{action: reject, phase: atv1alpha1.Pending, reason: "NotPrepared", wakeAt: noon},
		},
		"the image of another init container is not there: say so": {
			at: anAt(process, preparedPod), pod: aProcess(lacksTheImage("another")), now: early,
			want: outline{phase: atv1alpha1.Pending, reason: "ImagePullBackOff", wakeAt: noon},
		},
		"it could not be prepared: wait until it is due": {
			at: anAt(process, unprepared), now: early,
			want: outline{wakeAt: noon},
		},
		"it could not be prepared, and was changed: try again": {
			at: anAt(process, unprepared, edited), now: early,
			want: outline{action: createEarly, phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon},
		},
		"it could not be prepared, and is due: create the pod": {
			at: anAt(process, unprepared), now: noon,
			want: outline{action: create},
		},

		"claimed, and it had waited only: no attempt": {
			at: anAt(process, claimedAt(noon)), pod: aProcess(waited), now: noon.Add(time.Second),
			want: outline{phase: atv1alpha1.Running, reason: "NotPrepared", next: noon.Add(time.Second + firstWait)},
		},
		"claimed, changed too late, and it had waited only: the change was not too late": {
			at: anAt(process, claimedAt(noon), edited), pod: aProcess(waited, withdrawnAs("Scheduled")), now: noon.Add(time.Second),
			want: outline{phase: atv1alpha1.Pending, reason: "SpecChanged"},
		},
		"claimed, and it was withdrawn when it had begun": {
			at: anAt(process, claimedAt(noon), edited), now: noon.Add(time.Second),
			pod:  aProcess(exited(143, "Error"), podFailed("DeadlineExceeded"), withdrawnAs("Scheduled")),
			want: outline{phase: atv1alpha1.Failed, reason: "Withdrawn"},
		},
		"claimed, and the image of the start program is not there: withdraw": {
			at: anAt(process, claimedAt(noon)), pod: aProcess(lacksTheImage(startName)), now: noon.Add(time.Second),
			want: outline{action: withdraw, reason: "NotPrepared"},
		},
		"claimed, withdrawn for that, and ended: no attempt": {
			at: anAt(process, claimedAt(noon)), pod: aProcess(lacksTheImage(startName), podFailed("DeadlineExceeded"), withdrawnAs("NotPrepared")), now: noon.Add(time.Second),
			want: outline{phase: atv1alpha1.Running, reason: "NotPrepared", next: noon.Add(time.Second + firstWait)},
		},
		"a deadline counts from its time, and not from when the process was there": {
			at: anAt(process, claimedAt(noon), activeFor), pod: aProcess(runsSince(early), startedOnNode(early, 90)), now: noon.Add(time.Second),
			want: outline{phase: atv1alpha1.Running, reason: "Running", wakeAt: noon.Add(time.Minute)},
		},
		"a deadline counts from when the process was there, if that was late": {
			at: anAt(process, claimedAt(noon), activeFor), pod: aProcess(runsSince(noon.Add(7*time.Second)), startedOnNode(early, 90)), now: noon.Add(8 * time.Second),
			want: outline{phase: atv1alpha1.Running, reason: "Running", wakeAt: noon.Add(67 * time.Second)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next := decide(tc.at, observation{now: tc.now, pod: tc.pod})
			got := outline{next.action, next.news.phase, next.news.reason, next.news.nextAttempt, next.wakeAt}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outline{})); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWithdrawal: what keeps the command of a pod from running depends on how far the pod is.
func TestWithdrawal(t *testing.T) {
	mark := map[string]any{"annotations": map[string]any{withdrawnAnnotation: "Suspended"}}
	deadline := map[string]any{"activeDeadlineSeconds": shortestDeadline}
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		isSame bool
		spec   map[string]any
	}{
		"gated":     {aProcess(gated), true, nil},
		"no node":   {aProcess(), false, deadline},
		"on a node": {aProcess(runsSince(noon)), false, deadline},
	} {
		got := withdrawalOf(tc.pod, "Suspended")
		if diff := cmp.Diff(mark, got.Metadata) + cmp.Diff(tc.spec, got.Spec); diff != "" || got.IfSame != tc.isSame {
			t.Errorf("%s: if same %v (-want +got):\n%s", name, got.IfSame, diff)
		}
	}
}

// TestProcessPod is what is different in a pod whose process waits, and that the command stays what it was.
func TestProcessPod(t *testing.T) {
	t.Setenv(startImageVariable, "registry.example.com/fairlead:1")
	at := anAt(process, spec(func(s *atv1alpha1.AtSpec) {
		s.Command, s.Args, s.ActiveDeadlineSeconds, s.Schedule = nil, []string{"report", "$(date)"}, new(int64(60)), "2026-01-02T12:00:00.5Z"
		s.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "first"}},
			Containers: []corev1.Container{{
				Name: commandContainer, TerminationMessagePath: "/tmp/message",
				SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(7)), Privileged: new(true), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_TIME"}}},
				Resources:       corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "device"}}},
			}},
		}}
	}))
	plain, got := desiredPod(at, atExample.gvk, "sample", noon), earlyPod(at, atExample.gvk, "sample", noon.Add(-lead))
	want := plain.DeepCopy()
	want.Spec.ActiveDeadlineSeconds = new(int64(60 + 31))
	command := podtemplate.Container(&want.Spec, commandContainer)
	command.Command = append([]string{"/fairlead-at/start", "--at", "2026-01-02T12:00:00.5Z", "--message", "/tmp/message", "--"}, command.Command...)
	command.Env = []corev1.EnvVar{{Name: "FAIRLEAD_AT_WITHDRAWN", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['at.example.com/withdrawn']"},
	}}}
	command.VolumeMounts = []corev1.VolumeMount{{Name: startName, MountPath: "/fairlead-at", ReadOnly: true}}
	want.Spec.Volumes = []corev1.Volume{{Name: startName, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	install := corev1.Container{
		Name: startName, Image: "registry.example.com/fairlead:1", ImagePullPolicy: corev1.PullIfNotPresent,
		Command:                  []string{"/fairlead-at-start", "install", "/fairlead-at/start"},
		VolumeMounts:             []corev1.VolumeMount{{Name: startName, MountPath: "/fairlead-at"}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          restricted(),
	}
	install.SecurityContext.RunAsUser, install.SecurityContext.ReadOnlyRootFilesystem = new(int64(7)), new(true)
	want.Spec.InitContainers = slices.Insert(want.Spec.InitContainers, 0, install)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("earlyPod() (-want +got):\n%s", diff)
	}

	instant, is := waitsUntil(got)
	if want := noon.Add(500 * time.Millisecond); !is || !instant.Equal(want) {
		t.Errorf("waits until %s, %v", instant, is)
	}
	wrapped := podtemplate.Container(&got.Spec, commandContainer)
	wrapped.Command, wrapped.Args = []string{"/vault/env"}, wrapped.Command // as a webhook does it
	if _, is := waitsUntil(got); !is {
		t.Error("with a program of a webhook in front, it is not known any more")
	}
	if _, is := waitsUntil(plain); is {
		t.Error("a pod that does not wait is taken for one that does")
	}
}

// TestSummarizeProcess: startTime and lateness are about the command, and the message says how far its process is.
func TestSummarizeProcess(t *testing.T) {
	at := anAt(process, preparedPod)
	says := func(now time.Time, pod *corev1.Pod, phase atv1alpha1.Phase, message string, start *metav1.MicroTime, lateness time.Duration) {
		t.Helper()
		seen := observation{now: now, pod: pod}
		at.Status = summarize(at, seen, decide(at, seen), nil)
		if st := at.Status; st.Phase != phase || readyMessage(&st) != message || !st.StartTime.Equal(start) || st.Lateness != nil && st.Lateness.Duration != lateness {
			t.Errorf("%s, %q, started at %v, %v late", st.Phase, readyMessage(&st), st.StartTime, st.Lateness)
		}
	}
	before := at.DeepCopy()
	early := noon.Add(-20 * time.Second)
	const runs = "It runs at 2026-01-02T12:00:00Z, and its process "
	says(early, aProcess(gated), atv1alpha1.Pending, runs+"is being started, to wait for that", nil, 0)
	says(early, aProcess(), atv1alpha1.Pending, runs+"is being started, to wait for that", nil, 0)
	says(early, aProcess(runsSince(early)), atv1alpha1.Pending, runs+`waits for that on node "node"`, nil, 0)
	says(noon.Add(time.Second), aProcess(runsSince(early)), atv1alpha1.Running, running.message, micro(noon), 0)

	at = before
	ready := noon.Add(7 * time.Second)
	says(noon, aProcess(onNode), atv1alpha1.Running, running.message, micro(noon), 0)
	failed := endedWith(corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", StartedAt: metav1.Time{Time: ready}, FinishedAt: metav1.Time{Time: ready}})
	says(ready, aProcess(failed), atv1alpha1.Failed, "The command ended with exit code 3", micro(ready), 7*time.Second)
}

// TestCannotBeStarted: what the start program says is what the runtime would say.
func TestCannotBeStarted(t *testing.T) {
	pod := aProcess(endedWith(corev1.ContainerStateTerminated{ExitCode: 127, Reason: "Error", Message: starter.NotStarted + "no such file"}))
	if r := resultOf(pod, ""); r.reason != "StartError" || r.message != "The command could not be started: no such file" || r.final {
		t.Errorf("%+v", r)
	}
}
