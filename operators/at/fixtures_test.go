package at

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators/at/starter"
)

// noon is when the Ats of the unit tests are due.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

type atOption func(*atv1alpha1.At)

// anAt is an At that runs true at noon.
func anAt(options ...atOption) *atv1alpha1.At {
	at := &atv1alpha1.At{
		TypeMeta:   metav1.TypeMeta{APIVersion: atv1alpha1.GroupVersion.String(), Kind: "At"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample", UID: "at-uid", Generation: 1},
		Spec:       atv1alpha1.AtSpec{Schedule: noon.Format(time.RFC3339), Command: new("true")},
		Status:     atv1alpha1.AtStatus{Phase: atv1alpha1.Pending},
	}
	for _, option := range options {
		option(at)
	}
	return at
}

func spec(change func(*atv1alpha1.AtSpec)) atOption {
	return func(at *atv1alpha1.At) { change(&at.Spec) }
}

// claimedAt is the status after the first attempt's claim.
func claimedAt(start time.Time) atOption {
	return func(at *atv1alpha1.At) {
		at.Status.Phase = atv1alpha1.Running
		at.Status.Attempts = 1
		at.Status.PodName, at.Status.PodUID = "sample", "pod-uid"
		at.Status.StartTime = &metav1.MicroTime{Time: start}
	}
}

// preparedPod is the status while the first attempt's pod waits for its time.
func preparedPod(at *atv1alpha1.At) {
	at.Status.Reason, at.Status.PreparedPodUID = "Prepared", "pod-uid"
	at.Status.ScheduledTime = &metav1.MicroTime{Time: noon}
}

// backingOff is the status after a failed attempt that is tried again.
func backingOff(next time.Time) atOption {
	return func(at *atv1alpha1.At) {
		claimedAt(noon)(at)
		at.Spec.BackoffLimit = 3
		at.Status.NextAttemptTime = &metav1.Time{Time: next}
	}
}

func finishedAt(phase atv1alpha1.Phase, end time.Time) atOption {
	return func(at *atv1alpha1.At) {
		claimedAt(noon)(at)
		at.Status.Phase = phase
		at.Status.CompletionTime = &metav1.Time{Time: end}
	}
}

// refusedSince is the status after a node has refused the first attempt's pod.
func refusedSince(since, next time.Time) atOption {
	return func(at *atv1alpha1.At) {
		at.Status.Phase, at.Status.Reason, at.Status.Problem = atv1alpha1.Running, "NodeRefused", "it is full"
		at.Status.DiscardedPodUID = "pod-uid"
		at.Status.PendingSince, at.Status.NextAttemptTime = &metav1.MicroTime{Time: since}, &metav1.Time{Time: next}
	}
}

type podOption func(*corev1.Pod)

// aPod is the gated pod of the first attempt, created at noon.
func aPod(options ...podOption) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "sample", UID: "pod-uid", CreationTimestamp: metav1.Time{Time: noon},
			Annotations:     map[string]string{generationAnnotation: "1"},
			Labels:          map[string]string{run.ManagedByLabel: "at-operator"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(anAt(), atExample.gvk)},
		},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: gateName}},
			Containers:      []corev1.Container{{Name: commandContainer, Image: "img"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func ungated(pod *corev1.Pod) { pod.Spec.SchedulingGates = nil }

func onNode(pod *corev1.Pod) {
	ungated(pod)
	pod.Spec.NodeName = "node"
}

// withdrawn is the mark of a pod whose gate is not removed, for that reason.
func withdrawn(reason string) podOption {
	return func(pod *corev1.Pod) { pod.Annotations[withdrawnAnnotation] = reason }
}

// released is the note of when the gate was removed.
func released(at time.Time) podOption {
	return func(pod *corev1.Pod) { pod.Annotations[releasedAnnotation] = micros(at) }
}

// startedOnNode is a pod that the kubelet started then, with this deadline.
func startedOnNode(at time.Time, deadline int64) podOption {
	return func(pod *corev1.Pod) {
		pod.Status.StartTime, pod.Spec.ActiveDeadlineSeconds = &metav1.Time{Time: at}, &deadline
	}
}

// graceOf is a pod whose command may take that long to end.
func graceOf(seconds int64) podOption {
	return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// deletedAt is a pod that was deleted then, with a grace period of 30 s.
func deletedAt(at time.Time) podOption {
	return func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: at.Add(30 * time.Second)}, new(int64(30))
	}
}

// onSilentNode is how the node controller leaves a pod.
func onSilentNode(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Time{Time: noon}},
		corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue})
}

func disrupted(reason string, at time.Time) podOption {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: "because", LastTransitionTime: metav1.Time{Time: at},
		})
	}
}

func podFailed(reason string) podOption {
	return func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, reason }
}

// refusedAt is a pod that its node has refused, and that had arrived there then.
func refusedAt(arrived time.Time) podOption {
	return func(pod *corev1.Pod) {
		onNode(pod)
		pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", StartTime: &metav1.Time{Time: arrived},
			Message: "Pod was rejected: Node didn't have enough resource: cpu, requested: 100, used: 950, capacity: 1000"}
	}
}

func sidecarRuns(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	containerState("sidecar", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})(pod)
}

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: noon} }

func containerState(name string, state corev1.ContainerState) podOption {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
	}
}

func podRunning(pod *corev1.Pod) {
	onNode(pod)
	pod.Status.Phase = corev1.PodRunning
	containerState(commandContainer, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})(pod)
}

func exited(code int32, reason string) podOption {
	return func(pod *corev1.Pod) {
		onNode(pod)
		pod.Status.Phase = corev1.PodFailed
		if code == 0 {
			pod.Status.Phase = corev1.PodSucceeded
		}
		containerState(commandContainer, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, FinishedAt: metav1.Time{Time: noon.Add(time.Minute)},
		}})(pod)
	}
}

func waitingFor(reason string) podOption {
	return func(pod *corev1.Pod) {
		onNode(pod)
		containerState(commandContainer, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}})(pod)
	}
}

var process = spec(func(s *atv1alpha1.AtSpec) { s.Prepare = atv1alpha1.PrepareProcess })

// aProcess is the pod of a process that waits for noon, created and without its gate since lead before.
func aProcess(options ...podOption) *corev1.Pod {
	from := noon.Add(-lead)
	pod := earlyPod(anAt(process), atExample.gvk, "sample", from)
	pod.UID, pod.CreationTimestamp = "pod-uid", metav1.Time{Time: from}
	pod.Status.Phase = corev1.PodPending
	for _, option := range slices.Concat([]podOption{ungated, released(from)}, options) {
		option(pod)
	}
	return pod
}

func gated(pod *corev1.Pod) {
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gateName}}
	delete(pod.Annotations, releasedAnnotation)
}

// runsSince is a process that was started then, and waits or is the command.
func runsSince(at time.Time) podOption {
	return func(pod *corev1.Pod) {
		onNode(pod)
		pod.Status.Phase = corev1.PodRunning
		containerState(commandContainer, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: at}}})(pod)
		pod.Status.ContainerStatuses[0].ContainerID = "containerd://1"
	}
}

// endedWith is a process that has ended.
func endedWith(end corev1.ContainerStateTerminated) podOption {
	return func(pod *corev1.Pod) {
		onNode(pod)
		pod.Status.Phase = corev1.PodFailed
		if end.Reason != "ContainerStatusUnknown" {
			end.ContainerID = "containerd://1"
			if end.FinishedAt.IsZero() {
				end.FinishedAt = metav1.Time{Time: noon.Add(-lead / 2)}
			}
		}
		containerState(commandContainer, corev1.ContainerState{Terminated: &end})(pod)
		pod.Status.ContainerStatuses[0].ContainerID = end.ContainerID
	}
}

var (
	// waited is how a process ends that was stopped before its instant.
	waited = endedWith(corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Error", Message: starter.NotBegun + "\n"})
	// neverMade is how the kubelet ends a pod of which it has not created the container.
	neverMade = endedWith(corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"})
)

// withdrawnAs is a pod whose node was to end it.
func withdrawnAs(reason string) podOption {
	return func(pod *corev1.Pod) {
		withdrawn(reason)(pod)
		pod.Spec.ActiveDeadlineSeconds = new(shortestDeadline)
	}
}

// lacksTheImage is a pod whose node cannot pull the image of an init container.
func lacksTheImage(name string) podOption {
	return func(pod *corev1.Pod) {
		onNode(pod)
		waits := func(reason string) corev1.ContainerState {
			return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
		}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: name, State: waits("ImagePullBackOff")}}
		containerState(commandContainer, waits("PodInitializing"))(pod)
	}
}
