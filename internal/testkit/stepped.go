package testkit

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Simulated is a run in a simulated cluster, which has a clock of its own.
func Simulated(namespace string, c client.Client, now func() time.Time, k *Kubelet) *Run {
	return &Run{Namespace: namespace, Client: c, Kubelet: k, now: now}
}

// Nodes are what a stepped kubelet acts on.
type Nodes interface {
	Now() time.Time
	// Latest is the latest time that the clock has ever shown: it may be set back.
	Latest() time.Time
	// Pods calls f for all pods by their names. They must not be changed.
	Pods(f func(*corev1.Pod))
	// Bind puts a pod on a node, Report stores the status of a copy of a pod, and Remove
	// removes a deleted pod.
	Bind(pod *corev1.Pod)
	Report(pod *corev1.Pod)
	Remove(pod *corev1.Pod)
	// Prints notes what a container has written.
	Prints(pod, text string)
}

// SteppedKubelet is a [Kubelet] that acts when it is told to, and once each time.
type SteppedKubelet struct {
	*Kubelet
	nodes Nodes
	cares map[types.UID]*steps
}

// steps is how far a pod is.
type steps struct {
	at      progress
	outcome Outcome
	until   time.Time // of at; zero for never
	started time.Time
	past    past
}

type progress int

const (
	unbound progress = iota
	bound
	stuck
	startsLater
	waits
	runs
	over
)

// NewSteppedKubelet makes a kubelet; see [StartKubelet] for behave.
func NewSteppedKubelet(nodes Nodes, behave func(*corev1.Pod) Outcome) *SteppedKubelet {
	if behave == nil {
		behave = usual
	}
	return &SteppedKubelet{Kubelet: &Kubelet{behave: behave, logs: map[string]string{}, refusals: map[string]int{}}, nodes: nodes, cares: map[types.UID]*steps{}}
}

// Name is for the story.
func (k *SteppedKubelet) Name() string { return "kubelet" }

// Act takes the first pod that can go on one step further, and says whether there was
// one; otherwise it says when there may be.
func (k *SteppedKubelet) Act() (did bool, wake time.Time) {
	var next *corev1.Pod
	k.nodes.Pods(func(pod *corev1.Pod) {
		if next != nil {
			return
		}
		can, at := k.can(pod)
		if can {
			next = pod
		} else if !at.IsZero() && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	})
	if next == nil {
		return false, wake
	}
	k.step(next)
	return true, time.Time{}
}

func (k *SteppedKubelet) care(pod *corev1.Pod) *steps {
	care := k.cares[pod.UID]
	if care == nil {
		care = &steps{}
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			care.at = over
		}
		k.cares[pod.UID] = care
	}
	return care
}

// can says whether there is something to do for a pod, or when there will be.
func (k *SteppedKubelet) can(pod *corev1.Pod) (bool, time.Time) {
	care, now := k.care(pod), k.nodes.Now()
	if isDeleted(pod) {
		return true, time.Time{}
	}
	at := care.until
	switch care.at {
	case unbound:
		return isUngated(pod), time.Time{}
	case bound:
		return true, time.Time{}
	case over:
		return false, time.Time{}
	case startsLater:
	case stuck, waits, runs:
		if d := pod.Spec.ActiveDeadlineSeconds; d != nil {
			if stop := care.started.Add(time.Duration(*d) * time.Second); at.IsZero() || stop.Before(at) {
				at = stop
			}
		}
	}
	return !at.IsZero() && !now.Before(at), at
}

func (k *SteppedKubelet) step(pod *corev1.Pod) {
	care, now := k.care(pod), k.nodes.Now()
	if isDeleted(pod) {
		switch {
		case care.at == waits && care.outcome.isWaiting(now):
			care.at = over
			k.tell(pod, care, ended, care.outcome.endedWaiting())
			return
		case care.at == waits: // it did not wait for its kubelet
			k.run(pod, care)
			return
		case care.at == runs:
			care.at = over
			k.tell(pod, care, ended, Fails(0, 143)) // by SIGTERM
			return
		}
		k.nodes.Remove(pod)
		return
	}
	switch care.at {
	case unbound:
		care.at = bound
		if pod.Spec.NodeName == "" {
			k.nodes.Bind(pod)
		}
	case bound:
		o := k.behave(pod.DeepCopy())
		care.outcome, care.started = o, now
		switch {
		case k.refuses(pod, o):
			care.at = over
			k.tell(pod, care, refused, o)
			return
		case o.Waiting != "":
			care.at = stuck
			k.tell(pod, care, waiting, o)
			return
		case care.past.restarts > 0:
			care.at, care.until = startsLater, now.Add(max(o.StartAfter, restartAfter))
			k.tell(pod, &steps{started: now, past: past{restarts: care.past.restarts - 1, last: care.past.last}}, waiting, Stuck("CrashLoopBackOff"))
			return
		case o.StartAfter > 0:
			care.at, care.until = startsLater, now.Add(o.StartAfter)
			k.tell(pod, care, waiting, o)
			return
		}
		k.begin(pod, care)
	case stuck:
		care.at = over
		k.tell(pod, care, neverMade, care.outcome)
	case startsLater:
		k.begin(pod, care)
	case waits:
		if !care.outcome.isWaiting(now) {
			k.run(pod, care) // whatever its kubelet is about to do
			return
		}
		care.at = over
		k.tell(pod, care, stopped, care.outcome.endedWaiting())
	case runs:
		k.end(pod, care)
	case over:
	}
}

func (k *SteppedKubelet) begin(pod *corev1.Pod, care *steps) {
	now := k.nodes.Now()
	care.started = now
	if care.outcome.isWaiting(now) {
		care.at, care.until = waits, care.outcome.WaitsUntil
		k.tell(pod, care, running, care.outcome)
		return
	}
	k.run(pod, care)
	k.tell(pod, care, running, care.outcome)
}

// run has the containers do what they are there for.
func (k *SteppedKubelet) run(pod *corev1.Pod, care *steps) {
	now := k.nodes.Now()
	care.at, care.until = runs, time.Time{}
	if !care.outcome.Forever {
		care.until = now.Add(care.outcome.RunsFor)
	}
	if !care.outcome.StandsIn {
		k.starts = append(k.starts, Start{Pod: pod, Time: k.nodes.Latest(), Restart: care.past.restarts})
	}
	k.nodes.Prints(pod.Name, care.outcome.Log)
}

// end is for a pod whose containers have ended, or that has exceeded its deadline.
func (k *SteppedKubelet) end(pod *corev1.Pod, care *steps) {
	o := care.outcome
	if exceeded(pod, care.started, k.nodes.Now()) {
		care.at = over
		k.tell(pod, care, stopped, o)
		return
	}
	status := k.tell(pod, care, ended, o)
	switch {
	case restarts(pod, o):
		care.past = past{restarts: care.past.restarts + 1, last: mainState(status)}
		care.at = bound
	case status.Phase == corev1.PodRunning: // some containers outlive the others
		care.until = time.Time{}
	default:
		care.at = over
	}
}

// tell reports the status of a pod.
func (k *SteppedKubelet) tell(pod *corev1.Pod, care *steps, at stage, o Outcome) corev1.PodStatus {
	second := func(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
	told := pod.DeepCopy()
	qos := told.Status.QOSClass
	told.Status = podStatus(pod, o, at, care.past, second(care.started), second(k.nodes.Now()))
	told.Status.QOSClass = qos
	k.nodes.Report(told)
	return told.Status
}
