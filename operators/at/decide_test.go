package at

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// outline is what the cases of decide are about; the words are status_test's.
type outline struct {
	action action
	phase  atv1alpha1.Phase
	reason string
	next   time.Time // the next attempt
	wakeAt time.Time
}

func TestDecide(t *testing.T) {
	within := func(d time.Duration) atOption {
		return spec(func(s *atv1alpha1.AtSpec) { s.StartingDeadlineSeconds = new(int64(d / time.Second)) })
	}
	suspended := spec(func(s *atv1alpha1.AtSpec) { s.Suspend = true })
	pendingFor := spec(func(s *atv1alpha1.AtSpec) { s.PendingDeadlineSeconds = new(int64(60)) })
	activeFor := spec(func(s *atv1alpha1.AtSpec) { s.ActiveDeadlineSeconds = new(int64(60)) })
	retried := spec(func(s *atv1alpha1.AtSpec) { s.BackoffLimit = 1 })
	ttl := spec(func(s *atv1alpha1.AtSpec) { s.TTLSecondsAfterFinished = new(int64(60)) })
	forever := spec(func(s *atv1alpha1.AtSpec) {
		s.Schedule, s.StartingDeadlineSeconds = "9999-12-31T23:59:59Z", new(int64(1<<62))
	})

	edited := func(at *atv1alpha1.At) { at.Generation++ }
	windowed := spec(func(s *atv1alpha1.AtSpec) { s.WindowSeconds = 600 })
	inWindow := noon.Add(88439 * time.Millisecond) // of the UID of anAt

	cases := map[string]struct {
		at             *atv1alpha1.At
		pod, last      *corev1.Pod
		blocked        bool
		hidden         bool
		takenBackUntil time.Time
		now            time.Time
		want           outline
	}{
		"early: sleep until it is time to prepare it": {
			at: anAt(), now: noon.Add(-lead - 1),
			want: outline{phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon.Add(-lead)},
		},
		"at the beginning of its window: sleep until it is time to prepare it": {
			at: anAt(windowed), now: noon,
			want: outline{phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: inWindow.Add(-lead)},
		},
		"at its moment of the window: create the pod": {
			at: anAt(windowed), now: inWindow,
			want: outline{action: create},
		},
		"at the deadline, which counts from its moment of the window: create the pod": {
			at: anAt(windowed, within(time.Second)), now: inWindow.Add(time.Second),
			want: outline{action: create, wakeAt: inWindow.Add(time.Second)},
		},
		"after that deadline: missed": {
			at: anAt(windowed, within(time.Second)), now: inWindow.Add(time.Second + 1),
			want: outline{phase: atv1alpha1.Missed, reason: "StartingDeadlineExceeded"},
		},
		"claimed, and after that deadline: withdraw": {
			at: anAt(windowed, within(time.Second), claimedAt(inWindow)), pod: aPod(), now: inWindow.Add(time.Second + 1),
			want: outline{action: withdraw, phase: atv1alpha1.Missed, reason: "StartingDeadlineExceeded"},
		},
		"on time: create the pod": {
			at: anAt(), now: noon,
			want: outline{action: create},
		},
		"gated pod is there: claim it": {
			at: anAt(), pod: aPod(), now: noon,
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "Running"},
		},
		"moved to later after the pod was created: discard it": {
			at: anAt(), pod: aPod(), now: noon.Add(-time.Hour),
			want: outline{action: reject, phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon.Add(-lead)},
		},
		"the command was changed after the pod was created: discard it": {
			at: anAt(func(at *atv1alpha1.At) { at.Generation++ }), pod: aPod(), now: noon,
			want: outline{action: reject},
		},
		"a rejected pod: discard it": {
			at: anAt(func(at *atv1alpha1.At) { at.Generation++; at.Status.DiscardedPodUID = "pod-uid" }), pod: aPod(), now: noon,
			want: outline{action: discard},
		},
		"a rejected pod that could run after all: discard it": {
			at: anAt(func(at *atv1alpha1.At) { at.Status.DiscardedPodUID = "pod-uid" }), pod: aPod(), now: noon,
			want: outline{action: discard},
		},
		"a pod of an operator that did not note the generation, and may be about to claim it: do so, too": {
			at: anAt(), pod: aPod(func(pod *corev1.Pod) { pod.Annotations = nil }), now: noon,
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "Running"},
		},
		"gated pod is being deleted: wait for it to go": {
			at: anAt(), pod: aPod(deleted), now: noon,
			want: outline{},
		},
		"pod of a deleted At of the same name: wait for it to go": {
			at: anAt(), pod: aPod(), blocked: true, now: noon,
			want: outline{phase: atv1alpha1.Pending, reason: "PodConflict"},
		},
		"suspended when due: hold": {
			at: anAt(suspended), now: noon,
			want: outline{phase: atv1alpha1.Pending, reason: "Suspended"},
		},
		"suspended with a deadline: wake to miss it": {
			at: anAt(suspended, within(time.Minute)), now: noon,
			want: outline{phase: atv1alpha1.Pending, reason: "Suspended", wakeAt: noon.Add(time.Minute)},
		},
		"suspended after the pod was created: discard it": {
			at: anAt(suspended), pod: aPod(), now: noon,
			want: outline{action: reject, phase: atv1alpha1.Pending, reason: "Suspended"},
		},
		"at the starting deadline: still in time": {
			at: anAt(within(time.Minute)), now: noon.Add(time.Minute),
			want: outline{action: create, wakeAt: noon.Add(time.Minute)},
		},
		"after the starting deadline: missed": {
			at: anAt(within(time.Minute)), now: noon.Add(time.Minute + 1),
			want: outline{phase: atv1alpha1.Missed, reason: "StartingDeadlineExceeded"},
		},
		"after the starting deadline with an unclaimed pod: missed, discard it": {
			at: anAt(within(time.Minute)), pod: aPod(), now: noon.Add(time.Hour),
			want: outline{action: reject, phase: atv1alpha1.Missed, reason: "StartingDeadlineExceeded"},
		},
		"no deadline: run however late": {
			at: anAt(), now: noon.AddDate(200, 0, 0),
			want: outline{action: create},
		},
		"the year 9999 with a deadline beyond all time": {
			at: anAt(forever), now: noon,
			want: outline{phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: time.Date(9999, 12, 31, 23, 59, 29, 0, time.UTC)},
		},

		"its time is near: create the pod": {
			at: anAt(), now: noon.Add(-lead),
			want: outline{action: createEarly, phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon},
		},
		"its time is near, and it was created a moment ago: sleep until a quarter of its wait is left": {
			at:   anAt(func(at *atv1alpha1.At) { at.CreationTimestamp.Time = noon.Add(-20 * time.Second) }),
			now:  noon.Add(-10 * time.Second),
			want: outline{phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon.Add(-5 * time.Second)},
		},
		"its time is near, and its pod is there: prepare it": {
			at: anAt(), pod: aPod(), now: noon.Add(-1),
			want: outline{action: prepare, phase: atv1alpha1.Pending, reason: "Prepared", wakeAt: noon},
		},
		"its time is near, and the pod was rejected: discard it": {
			at: anAt(func(at *atv1alpha1.At) { at.Status.DiscardedPodUID = "pod-uid" }), pod: aPod(), now: noon.Add(-1),
			want: outline{action: discard, wakeAt: noon},
		},
		"its time is near, and the command was changed after the pod was created: discard it": {
			at: anAt(edited), pod: aPod(), now: noon.Add(-1),
			want: outline{action: reject, phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon},
		},
		"its time is near, and the pod has lost its gate: discard it": {
			at: anAt(), pod: aPod(ungated), now: noon.Add(-1),
			want: outline{action: reject, phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon},
		},
		"its time is near, and another pod is to go: wait": {
			at: anAt(), pod: aPod(), blocked: true, now: noon.Add(-1),
			want: outline{phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon},
		},
		"its time is near, and it is suspended: nothing is prepared": {
			at: anAt(suspended), now: noon.Add(-1),
			want: outline{phase: atv1alpha1.Pending, reason: "Suspended"},
		},
		"a further attempt is near: nothing is prepared": {
			at: anAt(backingOff(noon)), now: noon.Add(-1),
			want: outline{wakeAt: noon},
		},
		"prepared, and not yet due: never early": {
			at: anAt(preparedPod), pod: aPod(), now: noon.Add(-1),
			want: outline{phase: atv1alpha1.Pending, reason: "Prepared", wakeAt: noon},
		},
		"prepared, and the clock was set back: it stays gated": {
			at: anAt(preparedPod), pod: aPod(), now: noon.Add(-time.Hour),
			want: outline{phase: atv1alpha1.Pending, reason: "Prepared", wakeAt: noon},
		},
		"prepared and due: open the gate": {
			at: anAt(preparedPod), pod: aPod(), now: noon,
			want: outline{action: release},
		},
		"prepared, at the starting deadline: open the gate": {
			at: anAt(preparedPod, within(time.Minute)), pod: aPod(), now: noon.Add(time.Minute),
			want: outline{action: release, wakeAt: noon.Add(time.Minute)},
		},
		"prepared, after the starting deadline: withdraw": {
			at: anAt(preparedPod, within(time.Minute)), pod: aPod(), now: noon.Add(time.Minute + 1),
			want: outline{action: withdraw, reason: "StartingDeadlineExceeded"},
		},
		"prepared and withdrawn after the starting deadline: missed": {
			at: anAt(preparedPod, within(time.Minute)), pod: aPod(withdrawn("StartingDeadlineExceeded")), now: noon.Add(time.Minute + 1),
			want: outline{action: reject, phase: atv1alpha1.Missed, reason: "StartingDeadlineExceeded"},
		},
		"prepared, and the command was changed: withdraw": {
			at: anAt(preparedPod, edited), pod: aPod(), now: noon.Add(-1),
			want: outline{action: withdraw, reason: "Scheduled", wakeAt: noon},
		},
		"prepared, and the command was changed when it was due: withdraw": {
			at: anAt(preparedPod, edited), pod: aPod(), now: noon,
			want: outline{action: withdraw, reason: "SpecChanged"},
		},
		"prepared and withdrawn: it is not prepared any more": {
			at: anAt(preparedPod, edited), pod: aPod(withdrawn("Scheduled")), now: noon.Add(-1),
			want: outline{action: reject, phase: atv1alpha1.Pending, reason: "Scheduled", wakeAt: noon},
		},
		"withdrawn, and it could run after all: it stays withdrawn": {
			at: anAt(preparedPod), pod: aPod(withdrawn("StartingDeadlineExceeded")), now: noon,
			want: outline{action: reject},
		},
		"prepared, and suspended: withdraw": {
			at: anAt(preparedPod, suspended, edited), pod: aPod(), now: noon.Add(-1),
			want: outline{action: withdraw, reason: "Suspended"},
		},
		"prepared, and its gated pod is being deleted: it never ran": {
			at: anAt(preparedPod), pod: aPod(deleted), now: noon,
			want: outline{action: reject},
		},
		"prepared, and the gate is removed: it has begun": {
			at: anAt(preparedPod), pod: aPod(ungated, released(noon)), now: noon.Add(time.Second),
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "Running"},
		},
		"the gate is removed, and the clock was set back: it has begun": {
			at: anAt(preparedPod), pod: aPod(ungated, released(noon)), now: noon.Add(-time.Hour),
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "Running"},
		},
		"the gate is removed, and the command was changed: it has begun, and that is said": {
			at: anAt(preparedPod, edited), pod: aPod(ungated, released(noon)), now: noon.Add(time.Second),
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "ChangedTooLate"},
		},
		"the gate is removed, and the mark of a withdrawn pod came with somebody's hands: it has begun": {
			at: anAt(preparedPod), pod: aPod(ungated, withdrawn("Scheduled")), now: noon.Add(time.Second),
			want: outline{action: claim, phase: atv1alpha1.Running, reason: "Running"},
		},
		"the prepared pod is gone: it may have run, also before its time": {
			at: anAt(preparedPod, retried), now: noon.Add(-1),
			want: outline{phase: atv1alpha1.Failed, reason: "ResultUnknown"},
		},
		"another pod is there than the prepared one: that may have run": {
			at: anAt(preparedPod), pod: aPod(func(p *corev1.Pod) { p.UID = "another" }), now: noon,
			want: outline{phase: atv1alpha1.Failed, reason: "ResultUnknown"},
		},
		"changed too late, and the command runs: that is still said": {
			at: anAt(claimedAt(noon), edited), pod: aPod(podRunning), now: noon.Add(time.Second),
			want: outline{phase: atv1alpha1.Running, reason: "ChangedTooLate"},
		},
		"changed too late, and the command failed, attempts left: another command is not this one's next attempt": {
			at: anAt(claimedAt(noon), retried, edited), pod: aPod(exited(3, "Error")), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Failed, reason: "CommandFailed"},
		},
		"changed too late, and its node refused the pod: it has not begun after all": {
			at: anAt(claimedAt(noon), edited), pod: aPod(refusedAt(noon)), now: noon.Add(time.Second),
			want: outline{phase: atv1alpha1.Pending, reason: "NodeRefused"},
		},
		"prepared long before, and cannot start: the time to start counts from when it could": {
			at: anAt(claimedAt(noon)), pod: aPod(waitingFor("ErrImagePull"), released(noon.Add(lead))), now: noon.Add(lead + time.Second),
			want: outline{wakeAt: noon.Add(lead + problem)},
		},

		"claimed and still gated: open the gate": {
			at: anAt(claimedAt(noon)), pod: aPod(), now: noon,
			want: outline{action: release},
		},
		"claimed in time, gated after the starting deadline: missed": {
			at: anAt(claimedAt(noon), within(time.Minute)), pod: aPod(), now: noon.Add(time.Minute + 1),
			want: outline{action: withdraw, phase: atv1alpha1.Missed, reason: "StartingDeadlineExceeded"},
		},
		"claimed, gated at the starting deadline: open the gate": {
			at: anAt(claimedAt(noon), within(time.Minute)), pod: aPod(), now: noon.Add(time.Minute),
			want: outline{action: release, wakeAt: noon.Add(time.Minute)},
		},
		"claimed and gated after the active deadline: failed": {
			at: anAt(claimedAt(noon), activeFor), pod: aPod(), now: noon.Add(time.Minute),
			want: outline{action: withdraw, phase: atv1alpha1.Failed, reason: "DeadlineExceeded"},
		},
		"claimed and gated after the pending deadline: failed": {
			at: anAt(claimedAt(noon), pendingFor), pod: aPod(), now: noon.Add(time.Minute),
			want: outline{action: withdraw, phase: atv1alpha1.Failed, reason: "PendingDeadlineExceeded"},
		},
		"claimed long after the pod was made: the pending deadline counts from the claim": {
			at: anAt(claimedAt(noon.Add(time.Hour)), pendingFor), pod: aPod(), now: noon.Add(time.Hour),
			want: outline{action: release, wakeAt: noon.Add(time.Hour + time.Minute)},
		},
		"claimed pod running: hold, never start a second": {
			at: anAt(claimedAt(noon)), pod: aPod(podRunning), now: noon.Add(time.Hour),
			want: outline{phase: atv1alpha1.Running, reason: "Running"},
		},
		"claimed pod gone: its result is not known, and it is not run again": {
			at: anAt(claimedAt(noon)), now: noon,
			want: outline{phase: atv1alpha1.Failed, reason: "ResultUnknown"},
		},
		"claimed pod gone, attempts left: it may have succeeded, so no other follows": {
			at: anAt(claimedAt(noon), retried), now: noon,
			want: outline{phase: atv1alpha1.Failed, reason: "ResultUnknown"},
		},
		"the node lost the container, attempts left: it may have succeeded, so no other follows": {
			at: anAt(claimedAt(noon), retried), pod: aPod(exited(137, "ContainerStatusUnknown")), now: noon,
			want: outline{phase: atv1alpha1.Failed, reason: "ResultUnknown"},
		},
		"the node is gone with the running pod, attempts left: no other follows": {
			at:  anAt(claimedAt(noon), retried),
			pod: aPod(podRunning, podFailed(""), disrupted("DeletionByPodGC", noon)), now: noon,
			want: outline{phase: atv1alpha1.Failed, reason: "DeletionByPodGC"},
		},
		"evicted before it started, attempts left: the next one": {
			at: anAt(claimedAt(noon), retried), pod: aPod(onNode, podFailed("Evicted")), now: noon,
			want: outline{phase: atv1alpha1.Running, reason: "Evicted", next: noon.Add(10 * time.Second)},
		},
		"refused by its node on arrival, no attempts left: it is made again": {
			at: anAt(claimedAt(noon)), pod: aPod(refusedAt(noon)), now: noon.Add(500 * time.Millisecond),
			want: outline{phase: atv1alpha1.Running, reason: "NodeRefused", next: noon.Add(1500 * time.Millisecond)},
		},
		"refused again: it waits as long as it has waited": {
			at:  anAt(claimedAt(noon.Add(7*time.Second)), func(at *atv1alpha1.At) { at.Status.PendingSince = micro(noon) }),
			pod: aPod(refusedAt(noon.Add(7 * time.Second))), now: noon.Add(8 * time.Second),
			want: outline{phase: atv1alpha1.Running, reason: "NodeRefused", next: noon.Add(16 * time.Second)},
		},
		"refused for hours: it does not wait longer than other attempts": {
			at:  anAt(claimedAt(noon.Add(7*time.Hour)), func(at *atv1alpha1.At) { at.Status.PendingSince = micro(noon) }),
			pod: aPod(refusedAt(noon.Add(7 * time.Hour))), now: noon.Add(7 * time.Hour),
			want: outline{phase: atv1alpha1.Running, reason: "NodeRefused", next: noon.Add(7*time.Hour + 6*time.Minute)},
		},
		"refused by a kubelet that was restarted while it ran: it may have succeeded": {
			at: anAt(claimedAt(noon), retried), pod: aPod(refusedAt(noon)), now: noon.Add(arrivalTime),
			want: outline{phase: atv1alpha1.Failed, reason: "ResultUnknown"},
		},
		"refused by a node whose clock is set forward: it may have succeeded": {
			at: anAt(claimedAt(noon), retried), pod: aPod(refusedAt(noon.Add(time.Minute))), now: noon,
			want: outline{phase: atv1alpha1.Failed, reason: "ResultUnknown"},
		},
		"refused, and deleted: it may have succeeded": {
			at: anAt(claimedAt(noon), retried), pod: aPod(refusedAt(noon), deletedAt(noon)), now: noon,
			want: outline{phase: atv1alpha1.Failed, reason: "ResultUnknown"},
		},
		"pushed aside before it started, no attempts left: it is made again": {
			at:  anAt(claimedAt(noon)),
			pod: aPod(waitingFor("ContainerCreating"), podFailed("Preempting"), disrupted("TerminationByKubelet", noon)), now: noon,
			want: outline{phase: atv1alpha1.Running, reason: "NodeRefused", next: noon.Add(time.Second)},
		},
		"pushed aside while it ran: that was the attempt": {
			at: anAt(claimedAt(noon)), pod: aPod(exited(137, "Error"), podFailed("Preempting"), disrupted("TerminationByKubelet", noon)), now: noon,
			want: outline{phase: atv1alpha1.Failed, reason: "TerminationByKubelet"},
		},
		"to be made again: delete the pod that was refused": {
			at: anAt(refusedSince(noon, noon.Add(time.Second))), pod: aPod(refusedAt(noon)), now: noon,
			want: outline{action: discard, wakeAt: noon.Add(time.Second)},
		},
		"to be made again, and the refused pod is there: delete it": {
			at: anAt(refusedSince(noon, noon.Add(time.Second))), pod: aPod(refusedAt(noon)), now: noon.Add(time.Minute),
			want: outline{action: discard},
		},
		"to be made again, and the refused pod is gone: create the next one": {
			at: anAt(refusedSince(noon, noon.Add(time.Second))), now: noon.Add(time.Second),
			want: outline{action: create},
		},
		"to be made again: wake for the deadlines": {
			at: anAt(refusedSince(noon, noon.Add(2*time.Minute)), within(time.Minute), pendingFor), now: noon.Add(time.Second),
			want: outline{wakeAt: noon.Add(time.Minute)},
		},
		"to be made again after the starting deadline: missed": {
			at: anAt(refusedSince(noon, noon.Add(time.Hour)), within(time.Minute)), now: noon.Add(time.Minute + 1),
			want: outline{phase: atv1alpha1.Missed, reason: "StartingDeadlineExceeded"},
		},
		"to be made again after the pending deadline: failed": {
			at: anAt(refusedSince(noon, noon.Add(time.Hour)), pendingFor), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Failed, reason: "PendingDeadlineExceeded"},
		},
		"to be made again after the pending deadline, attempts left: the next one": {
			at: anAt(refusedSince(noon, noon.Add(time.Hour)), pendingFor, retried), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Running, reason: "PendingDeadlineExceeded", next: noon.Add(time.Minute + 10*time.Second)},
		},
		"made again: the pending deadline counts from the first time": {
			at:  anAt(claimedAt(noon.Add(30*time.Second)), pendingFor, func(at *atv1alpha1.At) { at.Status.PendingSince = micro(noon) }),
			pod: aPod(ungated), now: noon.Add(31 * time.Second),
			want: outline{wakeAt: noon.Add(time.Minute)},
		},
		"withdrawn: the reason is the mark's, whatever the clock says by now": {
			at: anAt(claimedAt(noon), within(time.Minute)), pod: aPod(withdrawn("StartingDeadlineExceeded")), now: noon,
			want: outline{phase: atv1alpha1.Missed, reason: "StartingDeadlineExceeded"},
		},
		"withdrawn, attempts left: the next one": {
			at: anAt(claimedAt(noon), retried, pendingFor), pod: aPod(withdrawn("PendingDeadlineExceeded")), now: noon,
			want: outline{phase: atv1alpha1.Running, reason: "PendingDeadlineExceeded", next: noon.Add(10 * time.Second)},
		},
		"withdrawn by nobody that we know: failed": {
			at: anAt(claimedAt(noon)), pod: aPod(withdrawn("StartingDeadlineExceeded")), now: noon,
			want: outline{phase: atv1alpha1.Failed, reason: "PodDeleted"},
		},
		"withdrawn, and somebody has removed the gate: follow it": {
			at: anAt(claimedAt(noon), within(time.Minute)), pod: aPod(podRunning, withdrawn("StartingDeadlineExceeded")), now: noon,
			want: outline{phase: atv1alpha1.Running, reason: "Running"},
		},
		"missed, and its pod is still there: delete it": {
			at:  anAt(finishedAt(atv1alpha1.Missed, noon), func(at *atv1alpha1.At) { at.Status.PodName, at.Status.PodUID = "", "" }),
			pod: aPod(withdrawn("StartingDeadlineExceeded")), now: noon,
			want: outline{action: abandon},
		},
		"the pod has lost its label: restore it": {
			at: anAt(claimedAt(noon)), pod: aPod(podRunning, func(p *corev1.Pod) { p.Labels = nil }), hidden: true, now: noon,
			want: outline{action: takeBack, wakeAt: noon.Add(time.Second)},
		},
		"the pod has lost its label again: look at it from time to time": {
			at: anAt(claimedAt(noon)), pod: aPod(podRunning, func(p *corev1.Pod) { p.Labels = nil }), hidden: true, takenBackUntil: noon.Add(time.Minute), now: noon,
			want: outline{phase: atv1alpha1.Running, reason: "Running", wakeAt: noon.Add(10 * time.Second)},
		},
		"the pod has lost its owner again: restore it later": {
			at: anAt(finishedAt(atv1alpha1.Done, noon)), pod: aPod(exited(0, "Completed"), func(p *corev1.Pod) { p.OwnerReferences = nil }),
			takenBackUntil: noon.Add(time.Second), now: noon,
			want: outline{wakeAt: noon.Add(time.Second)},
		},
		"a pod that is over has lost its label: it needs none": {
			at: anAt(finishedAt(atv1alpha1.Done, noon)), pod: aPod(exited(0, "Completed"), func(p *corev1.Pod) { p.Labels = nil }), now: noon,
			want: outline{},
		},
		"the pod has lost its owner: restore it": {
			at: anAt(finishedAt(atv1alpha1.Done, noon)), pod: aPod(exited(0, "Completed"), func(p *corev1.Pod) { p.OwnerReferences = nil }), now: noon,
			want: outline{action: takeBack, wakeAt: noon.Add(time.Second)},
		},
		"command succeeded": {
			at: anAt(claimedAt(noon)), pod: aPod(exited(0, "Completed")), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Done, reason: "Completed"},
		},
		"command succeeded while a sidecar goes on": {
			at: anAt(claimedAt(noon)), now: noon.Add(time.Minute),
			pod: aPod(exited(0, "Completed"), containerState("sidecar", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}),
				func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }),
			want: outline{phase: atv1alpha1.Done, reason: "Completed"},
		},
		"command failed": {
			at: anAt(claimedAt(noon)), pod: aPod(exited(3, "Error")), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Failed, reason: "CommandFailed"},
		},
		"command failed, attempts left": {
			at: anAt(claimedAt(noon), retried), pod: aPod(exited(3, "Error")), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Running, reason: "CommandFailed", next: noon.Add(time.Minute + 10*time.Second)},
		},
		"command failed with a final exit code: no further attempt": {
			at:  anAt(claimedAt(noon), retried, spec(func(s *atv1alpha1.AtSpec) { s.FinalExitCodes = []int32{2, 3} })),
			pod: aPod(exited(3, "Error")), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Failed, reason: "CommandFailed"},
		},
		"killed by its active deadline: no further attempt": {
			at:  anAt(claimedAt(noon), retried, activeFor),
			pod: aPod(exited(137, "Error"), func(p *corev1.Pod) { p.Status.Reason = "DeadlineExceeded" }), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Failed, reason: "DeadlineExceeded"},
		},
		"a deadline, and it runs: wake for it": {
			at: anAt(claimedAt(noon), activeFor), pod: aPod(podRunning, startedOnNode(noon, 60)), now: noon.Add(time.Second),
			want: outline{phase: atv1alpha1.Running, reason: "Running", wakeAt: noon.Add(time.Minute)},
		},
		"active deadline passed on a node: the kubelet has time to end it": {
			at: anAt(claimedAt(noon), activeFor), pod: aPod(podRunning, startedOnNode(noon, 60)), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Running, reason: "Running", wakeAt: noon.Add(time.Minute + problem)},
		},
		"active deadline passed, and the pod came to its node late: stop it": {
			at: anAt(claimedAt(noon), activeFor), pod: aPod(podRunning, startedOnNode(noon.Add(30*time.Second), 60)), now: noon.Add(time.Minute),
			want: outline{action: stop, wakeAt: noon.Add(time.Minute + killGrace)},
		},
		"active deadline passed, and the pod that came late is stopped: it has time to end": {
			at: anAt(claimedAt(noon), activeFor), pod: aPod(podRunning, startedOnNode(noon.Add(30*time.Second), 1)), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Running, reason: "Running", wakeAt: noon.Add(time.Minute + problem)},
		},
		"active deadline passed, and the command takes its time to end: say so": {
			at: anAt(claimedAt(noon), activeFor), pod: aPod(podRunning, startedOnNode(noon, 60), graceOf(300)), now: noon.Add(time.Minute + problem),
			want: outline{phase: atv1alpha1.Running, reason: "Stopping", wakeAt: noon.Add(6*time.Minute + 15*time.Second)},
		},
		"active deadline and grace period passed, and the kubelet is silent: failed": {
			at: anAt(claimedAt(noon), activeFor), pod: aPod(podRunning, startedOnNode(noon, 60), graceOf(300)), now: noon.Add(6*time.Minute + 15*time.Second),
			want: outline{phase: atv1alpha1.Failed, reason: "DeadlineExceeded"},
		},
		"active deadline passed and the kubelet is silent: failed": {
			at: anAt(claimedAt(noon), activeFor), pod: aPod(podRunning), now: noon.Add(time.Minute + killGrace),
			want: outline{phase: atv1alpha1.Failed, reason: "DeadlineExceeded"},
		},
		"active deadline passed on a node, and the command has not started: the kubelet has time to end it": {
			at: anAt(claimedAt(noon), activeFor), pod: aPod(onNode, graceOf(300)), now: noon.Add(time.Minute + killGrace),
			want: outline{phase: atv1alpha1.Failed, reason: "DeadlineExceeded"},
		},
		"active deadline passed without a node: failed": {
			at: anAt(claimedAt(noon), activeFor), pod: aPod(ungated), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Failed, reason: "DeadlineExceeded"},
		},
		"deleted, and its kubelet has time to end it": {
			at: anAt(claimedAt(noon)), pod: aPod(podRunning, deletedAt(noon)), now: noon.Add(30 * time.Second),
			want: outline{phase: atv1alpha1.Running, reason: "Running", wakeAt: noon.Add(30*time.Second + killGrace)},
		},
		"deleted, and its node is silent: say so": {
			at: anAt(claimedAt(noon)), pod: aPod(podRunning, deletedAt(noon)), now: noon.Add(30*time.Second + killGrace),
			want: outline{phase: atv1alpha1.Running, reason: "NodeNotResponding"},
		},
		"its node is silent, and it is not deleted yet: say so": {
			at: anAt(claimedAt(noon)), pod: aPod(podRunning, onSilentNode), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Running, reason: "NodeNotResponding"},
		},
		"its node is silent: a deadline still counts": {
			at: anAt(claimedAt(noon), activeFor), pod: aPod(podRunning, onSilentNode, startedOnNode(noon, 60)), now: noon.Add(time.Minute + problem),
			want: outline{phase: atv1alpha1.Running, reason: "NodeNotResponding", wakeAt: noon.Add(time.Minute + killGrace)},
		},
		"its node is silent, and the command ended before: that is the result": {
			at: anAt(claimedAt(noon)), pod: aPod(exited(0, "Completed"), onSilentNode, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Done, reason: "Completed"},
		},
		"cannot start yet: say nothing for a while": {
			at: anAt(claimedAt(noon)), pod: aPod(waitingFor("ErrImagePull")), now: noon.Add(time.Second),
			want: outline{wakeAt: noon.Add(problem)},
		},
		"cannot start: say why": {
			at: anAt(claimedAt(noon)), pod: aPod(waitingFor("ErrImagePull")), now: noon.Add(problem),
			want: outline{phase: atv1alpha1.Running, reason: "ImagePullBackOff"},
		},
		"cannot start by the pending deadline: failed": {
			at: anAt(claimedAt(noon), pendingFor), pod: aPod(waitingFor("ErrImagePull")), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Failed, reason: "PendingDeadlineExceeded"},
		},
		"no node before the pending deadline: wake for it": {
			at: anAt(claimedAt(noon), pendingFor), pod: aPod(ungated), now: noon.Add(30 * time.Second),
			want: outline{wakeAt: noon.Add(time.Minute)},
		},
		"the scheduler has not looked at it yet: say nothing for a minute": {
			at: anAt(claimedAt(noon)), pod: aPod(ungated), now: noon.Add(problem),
			want: outline{wakeAt: noon.Add(slowStart)},
		},
		"a slow node: say so after a minute": {
			at: anAt(claimedAt(noon)), pod: aPod(waitingFor("ContainerCreating")), now: noon.Add(slowStart),
			want: outline{phase: atv1alpha1.Running, reason: "Starting"},
		},

		"backing off: sleep": {
			at: anAt(backingOff(noon.Add(time.Minute))), now: noon,
			want: outline{wakeAt: noon.Add(time.Minute)},
		},
		"backing off beyond the active deadline: wake for it": {
			at: anAt(backingOff(noon.Add(time.Hour)), activeFor), now: noon,
			want: outline{wakeAt: noon.Add(time.Minute)},
		},
		"backing off, and the last pod never started: delete it, or it may start yet": {
			at: anAt(backingOff(noon.Add(time.Minute))), last: aPod(ungated), now: noon,
			want: outline{action: abandon},
		},
		"backing off, and the last pod's sidecar runs: stop it": {
			at: anAt(backingOff(noon.Add(time.Minute))), now: noon,
			last: aPod(exited(3, "Error"), containerState("sidecar", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}),
				func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }),
			want: outline{action: stop},
		},
		"backed off, and the last pod has not ended: wait for it": {
			at: anAt(backingOff(noon)), last: aPod(podRunning, deleted), now: noon,
			want: outline{},
		},
		"backed off, and the last pod has ended: create the next one": {
			at: anAt(backingOff(noon)), last: aPod(exited(3, "Error")), now: noon,
			want: outline{action: create},
		},
		"backed off: create the next pod": {
			at: anAt(backingOff(noon)), now: noon,
			want: outline{action: create},
		},
		"backed off past the active deadline: failed": {
			at: anAt(backingOff(noon), activeFor), now: noon.Add(time.Minute),
			want: outline{phase: atv1alpha1.Failed, reason: "DeadlineExceeded"},
		},

		"finished, pod deleted: do not rerun": {
			at: anAt(finishedAt(atv1alpha1.Done, noon)), now: noon,
			want: outline{},
		},
		"finished, sidecar runs: stop it": {
			at: anAt(finishedAt(atv1alpha1.Done, noon)), now: noon,
			pod: aPod(exited(0, "Completed"), containerState("sidecar", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}),
				func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }),
			want: outline{action: stop},
		},
		"finished by its deadline, and the command runs on: stop it": {
			at: anAt(finishedAt(atv1alpha1.Failed, noon)), pod: aPod(podRunning), now: noon,
			want: outline{action: stop},
		},
		"finished, pod never started: delete it": {
			at: anAt(finishedAt(atv1alpha1.Failed, noon)), pod: aPod(waitingFor("ErrImagePull")), now: noon,
			want: outline{action: abandon},
		},
		"finished, kept for a while": {
			at: anAt(finishedAt(atv1alpha1.Done, noon), ttl), now: noon,
			want: outline{wakeAt: noon.Add(time.Minute)},
		},
		"finished, kept long enough": {
			at: anAt(finishedAt(atv1alpha1.Done, noon), ttl), now: noon.Add(time.Minute),
			want: outline{action: remove},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next := decide(tc.at, observation{
				now: tc.now, pod: tc.pod, last: tc.last, blocked: tc.blocked, hidden: tc.hidden, takenBackUntil: tc.takenBackUntil,
			})
			if acts := !slices.Contains([]action{hold, create, createEarly, remove}, next.action); acts && next.pod == nil {
				t.Errorf("action %q, of no pod", next.action)
			}
			got := outline{next.action, next.news.phase, next.news.reason, next.news.nextAttempt, next.wakeAt}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outline{})); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	for attempts, want := range map[int32]time.Duration{
		1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 6: 320 * time.Second, 7: 6 * time.Minute, 100: 6 * time.Minute,
	} {
		if got := backoff(attempts); got != want {
			t.Errorf("backoff(%d) = %v, want %v", attempts, got, want)
		}
	}
}
