package testkit

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Outcome is what a [Kubelet] makes of a pod. The zero value is a pod whose
// containers end at once with exit code 0.
type Outcome struct {
	// StartAfter is how long the pod waits between its node and its start.
	StartAfter time.Duration
	// Waiting keeps the containers from ever starting, for this reason, for
	// example ImagePullBackOff.
	Waiting string

	// WaitsUntil is until when the containers run and wait, with this message: only then they have started for the
	// ledger. Those that are ended before do not start, and have it as their termination message.
	WaitsUntil time.Time
	WaitsWith  string

	// StandsIn keeps the pod out of the ledger: it runs nothing of what it was made for.
	StandsIn bool

	// Refused is why the node refuses the pod when it arrives, for example OutOfcpu:
	// no container is ever started. It refuses that many pods of a name, and takes
	// the next one.
	Refused  string
	Refusals int

	// Forever keeps the containers running until the pod is deleted. Otherwise
	// they end RunsFor after they started.
	Forever bool
	RunsFor time.Duration
	// NotReady makes a running pod an unready one.
	NotReady bool
	// InPlace keeps a pod whose containers are to be restarted Running meanwhile,
	// as a kubelet does. Otherwise it is Failed or Succeeded for a moment, and
	// whoever controls it may replace it.
	InPlace bool
	// Outlive names containers that continue when the others have ended.
	Outlive []string

	// ExitCode, Reason and Message are the ended containers' termination
	// state. An empty Reason is Completed or Error, as the exit code has it.
	ExitCode int32
	Reason   string
	Message  string
	// PodReason ends the pod itself as Failed, for example Evicted.
	PodReason string

	// Log is what the containers print; see [Kubelet.Logs].
	Log string
}

// Succeeds is a pod that runs for a while and ends with exit code 0.
func Succeeds(after time.Duration) Outcome { return Outcome{RunsFor: after} }

// Fails is a pod that runs for a while and ends with the exit code.
func Fails(after time.Duration, exitCode int32) Outcome {
	return Outcome{RunsFor: after, ExitCode: exitCode}
}

// isWaiting says whether the containers only wait by then.
func (o Outcome) isWaiting(now time.Time) bool { return now.Before(o.WaitsUntil) }

// endedWaiting is how containers end that are stopped while they wait.
func (o Outcome) endedWaiting() Outcome { return Outcome{ExitCode: 143, Message: o.WaitsWith} }

// Stays is a pod that runs until it is deleted.
func Stays() Outcome { return Outcome{Forever: true} }

// Stuck is a pod whose containers never start.
func Stuck(reason string) Outcome { return Outcome{Waiting: reason} }

// A stage is how far a pod's containers are.
type stage int

const (
	refused stage = iota // on arrival
	waiting
	running
	ended   // except for the containers that outlive the others
	stopped // all of them, by the pod's deadline
	// neverMade is by the deadline, too: the containers never got as far as to exist.
	neverMade
)

// past is what a pod's containers have behind them.
type past struct {
	restarts int32
	last     corev1.ContainerState
}

// podStatus is the status that a kubelet would report for a pod of which this
// is the outcome: pure, like the kubelet's own.
func podStatus(pod *corev1.Pod, o Outcome, at stage, p past, started, now metav1.Time) corev1.PodStatus {
	if at == refused {
		return corev1.PodStatus{Phase: corev1.PodFailed, Reason: o.Refused, Message: "Pod was rejected: " + o.Message, StartTime: &started}
	}
	s := corev1.PodStatus{
		Phase:     corev1.PodPending,
		StartTime: &started,
		HostIP:    "192.0.2.1",
		HostIPs:   []corev1.HostIP{{IP: "192.0.2.1"}},
	}
	for _, c := range pod.Spec.InitContainers {
		how := at
		if (at == running || at == neverMade) && !isSidecar(c) {
			how = ended
		}
		s.InitContainerStatuses = append(s.InitContainerStatuses,
			containerStatus(c, Outcome{Waiting: o.Waiting, NotReady: o.NotReady}, how, past{}, started, now))
	}
	allEnded := true
	for _, c := range pod.Spec.Containers {
		how := at
		if at == ended && (c.Name == Proxy || slices.Contains(o.Outlive, c.Name)) {
			how, allEnded = running, false
		}
		s.ContainerStatuses = append(s.ContainerStatuses, containerStatus(c, o, how, p, started, now))
	}
	switch {
	case at == waiting:
	case at == stopped, at == neverMade:
		s.Phase, s.Reason = corev1.PodFailed, "DeadlineExceeded"
		s.Message = "Pod was active on the node longer than the specified deadline"
	case at == ended && o.PodReason != "":
		s.Phase, s.Reason, s.Message = corev1.PodFailed, o.PodReason, o.Message
	case at == ended && allEnded && o.InPlace && restarts(pod, o):
		s.Phase = corev1.PodRunning
	case at == ended && allEnded && o.ExitCode != 0:
		s.Phase = corev1.PodFailed
	case at == ended && allEnded:
		s.Phase = corev1.PodSucceeded
	default:
		s.Phase = corev1.PodRunning
		s.PodIP, s.PodIPs = "192.0.2.2", []corev1.PodIP{{IP: "192.0.2.2"}}
	}
	s.Conditions = podConditions(s, o, at, now)
	return s
}

// Proxy is a container that a mesh injects: it goes on until its pod is deleted.
const Proxy = "proxy"

// mainState is that of the first container but for a proxy.
func mainState(s corev1.PodStatus) corev1.ContainerState {
	for _, c := range s.ContainerStatuses {
		if c.Name != Proxy {
			return c.State
		}
	}
	return corev1.ContainerState{}
}

func podConditions(s corev1.PodStatus, o Outcome, at stage, now metav1.Time) []corev1.PodCondition {
	condition := func(t corev1.PodConditionType, ok bool, reason string) corev1.PodCondition {
		if ok {
			return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now}
		}
		return corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, LastTransitionTime: now, Reason: reason}
	}
	reason := "ContainersNotReady"
	if s.Phase == corev1.PodSucceeded {
		reason = "PodCompleted"
	}
	ready := at == running && !o.NotReady
	return []corev1.PodCondition{
		condition(corev1.PodScheduled, true, ""),
		condition(corev1.PodInitialized, at != waiting, "ContainersNotInitialized"),
		condition(corev1.ContainersReady, ready, reason),
		condition(corev1.PodReady, ready, reason),
	}
}

func containerStatus(c corev1.Container, o Outcome, at stage, p past, started, now metav1.Time) corev1.ContainerStatus {
	s := corev1.ContainerStatus{
		Name:                 c.Name,
		Image:                c.Image,
		ImageID:              "example.com/" + c.Name + "@sha256:0",
		RestartCount:         p.restarts,
		LastTerminationState: p.last,
	}
	isRunning := at == running
	s.Started = &isRunning
	switch at {
	case refused: // which has no containers
	case waiting:
		reason := o.Waiting
		if reason == "" {
			reason = "ContainerCreating"
		}
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: o.Message}
	case neverMade: // as the kubelet reports it
		s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}
	case running:
		s.Ready = !o.NotReady
		s.ContainerID = "fake://" + c.Name
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
	case ended, stopped:
		if at == stopped && (o.Forever || slices.Contains(o.Outlive, c.Name)) {
			o = Fails(0, 137) // ended by SIGKILL
		}
		reason := o.Reason
		if reason == "" {
			reason = "Completed"
			if o.ExitCode != 0 {
				reason = "Error"
			}
		}
		s.ContainerID = "fake://" + c.Name
		s.State.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: o.ExitCode, Reason: reason, Message: o.Message, StartedAt: started, FinishedAt: now, ContainerID: s.ContainerID,
		}
	}
	return s
}

// exceeded says whether the pod has run for longer than its
// activeDeadlineSeconds, at which a kubelet stops it. It may be set late.
func exceeded(pod *corev1.Pod, started, now time.Time) bool {
	d := pod.Spec.ActiveDeadlineSeconds
	return d != nil && now.Sub(started) >= time.Duration(*d)*time.Second
}

// restarts says whether a kubelet would start the ended containers again.
func restarts(pod *corev1.Pod, o Outcome) bool {
	switch {
	case o.PodReason != "":
		return false
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return false
	case pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		return o.ExitCode != 0
	default:
		return true
	}
}

func isSidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
