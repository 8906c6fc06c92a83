package job

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/etcd/task"
)

// State is how far a task is.
type State string

// The states.
const (
	// Waiting is of a task whose container has not started.
	Waiting State = "Waiting"
	// Running is of one whose container has.
	Running State = "Running"
	// Ended is of one that nothing is done for any more.
	Ended State = "Ended"
)

// Outcome is what is known of a task.
type Outcome struct {
	State State
	// Result is what the agent has reported of a task that it did: State is Ended, and Problem nil.
	Result *task.Result
	// Problem says, if State is Ended, why the task was not done. Otherwise it says what keeps it from
	// being done, and it goes on by itself when that is gone: nothing needs to be ended for it.
	Problem *task.Problem
}

// The reasons of problems of pods. All of them pass.
const (
	// ReasonAgentDied says that the agent ended without a word: killed, evicted, out of memory.
	ReasonAgentDied = "AgentDied"
	// ReasonUnschedulable says that no node takes the pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonNoImage says that an image cannot be pulled.
	ReasonNoImage = pods.NoImage
	// ReasonCannotStart says that a container cannot be started.
	ReasonCannotStart = "CannotStart"
)

// Read says what became of the task of a pod of [New].
func Read(pod *corev1.Pod) Outcome {
	agentIs, fetchIs := pods.Status(pod, AgentContainer), pods.Status(pod, FetchContainer)
	ended := agentIs.State.Terminated
	if failed := fetchIs.State.Terminated; ended == nil && failed != nil && failed.ExitCode != 0 {
		ended = failed
	}
	switch {
	case ended != nil:
		// Also when the pod goes on for a moment, for the etcd of a proof.
		return said(pod, ended)
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return Outcome{State: Ended, Problem: died(pod, nil)}
	}
	found := Outcome{State: Waiting, Problem: obstacle(pod)}
	if agentIs.State.Running != nil || fetchIs.State.Running != nil {
		found.State = Running
	}
	return found
}

// ReadFetch says what became of the init container of [Fetch] in the pod of a member. The kubelet
// repeats it until it succeeds: Problem is then that of the last try.
func ReadFetch(pod *corev1.Pod) Outcome {
	is := pods.Status(pod, FetchContainer)
	ended, last := is.State.Terminated, is.LastTerminationState.Terminated
	switch {
	case ended != nil && ended.ExitCode == 0:
		return said(pod, ended)
	case ended != nil:
		last = ended
	}
	found := Outcome{State: Waiting, Problem: obstacle(pod)}
	if is.State.Running != nil {
		found.State = Running
	}
	if last != nil && last.ExitCode != 0 && found.Problem == nil {
		found.Problem = said(pod, last).Problem
	}
	if pod.Status.Phase == corev1.PodFailed {
		found.State = Ended
		if found.Problem == nil {
			found.Problem = died(pod, nil)
		}
	}
	return found
}

// said is what the agent has reported. It is believed only if its exit code says the same: an image
// that is not the agent's may end well, and say nothing.
func said(pod *corev1.Pod, end *corev1.ContainerStateTerminated) Outcome {
	result := &task.Result{}
	err := json.Unmarshal([]byte(end.Message), result)
	switch {
	case err == nil && result.Problem != nil && end.ExitCode != 0:
		return Outcome{State: Ended, Problem: withEtcds(pod, *result.Problem)}
	case err == nil && result.Problem == nil && end.ExitCode == 0:
		return Outcome{State: Ended, Result: result}
	}
	return Outcome{State: Ended, Problem: died(pod, end)}
}

// died is about an agent that did not report.
func died(pod *corev1.Pod, end *corev1.ContainerStateTerminated) *task.Problem {
	p := &task.Problem{Reason: ReasonAgentDied, Retriable: true}
	why := strings.TrimSuffix(strings.Join(strings.Fields(pod.Status.Message), " "), ".")
	switch {
	case end != nil && end.Reason == "OOMKilled":
		p.Message = fmt.Sprintf("Pod %q ran out of memory: raise spec.pod.resources, for a restore those of the EtcdCluster", pod.Name)
	case pod.Status.Reason != "" && why != "":
		p.Message = fmt.Sprintf("Pod %q was ended: %s: %s", pod.Name, pod.Status.Reason, why)
	case pod.Status.Reason != "":
		p.Message = fmt.Sprintf("Pod %q was ended: %s", pod.Name, pod.Status.Reason)
	case end != nil && (end.ExitCode == 0 || lacksAgent(end)):
		p.Message = fmt.Sprintf("Pod %q ended without a result: image %q is not this operator's", pod.Name, imageOf(pod))
	case end != nil:
		p.Message = fmt.Sprintf("Pod %q ended without a result, with exit code %d", pod.Name, end.ExitCode)
		if words := pods.LastWords(end.Message); words != "" {
			p.Message += ": " + words
		}
	default:
		p.Message = fmt.Sprintf("Pod %q ended before its agent", pod.Name)
	}
	return p
}

// lacksAgent says whether an image has no agent in it.
func lacksAgent(end *corev1.ContainerStateTerminated) bool {
	return end.Reason == "StartError" && strings.Contains(end.Message, fmt.Sprintf("%q: stat", task.Program))
}

func imageOf(pod *corev1.Pod) string {
	return cmp.Or(pods.ImageOf(pod, AgentContainer), pods.ImageOf(pod, FetchContainer))
}

// withEtcds adds the last words of a throw-away etcd that does not serve.
func withEtcds(pod *corev1.Pod, p task.Problem) *task.Problem {
	if p.Reason != task.ReasonProofNotServed {
		return &p
	}
	is := pods.Status(pod, EtcdContainer)
	for _, end := range []*corev1.ContainerStateTerminated{is.LastTerminationState.Terminated, is.State.Terminated} {
		if end == nil || end.ExitCode == 0 {
			continue
		}
		if words := pods.LastWords(end.Message); words != "" {
			p.Message += ": its etcd ended: " + words
			break
		}
	}
	return &p
}

// obstacle is what keeps a pod from starting, or a container of it.
func obstacle(pod *corev1.Pod) *task.Problem {
	if words := pods.Unschedulable(pod); words != "" && len(pod.Spec.SchedulingGates) == 0 {
		return &task.Problem{Reason: ReasonUnschedulable, Message: fmt.Sprintf("Pod %q %s", pod.Name, words), Retriable: true}
	}
	if words := pods.OnSilentNodes(*pod); words != "" {
		return &task.Problem{Reason: pods.NodeNotResponding, Message: "The " + words, Retriable: true}
	}
	isStarted := pods.Status(pod, AgentContainer).State.Running != nil || pods.Status(pod, FetchContainer).State.Running != nil
	for _, c := range pod.Status.InitContainerStatuses {
		// The agent says itself why it ends. Of others, one that runs for the moment counts until it lets the agent
		// start: so no time is needed.
		if crash, is := pods.CrashLoop(c, time.Time{}); is && !isStarted && c.Name != FetchContainer {
			return &task.Problem{Reason: pods.CrashLoopBackOff, Message: fmt.Sprintf("Pod %q: %s", pod.Name, crash), Retriable: true}
		}
	}
	for _, c := range pods.Statuses(pod) {
		reason, words := pods.CannotStart(pod, c)
		if reason != "" && reason != ReasonNoImage {
			reason = ReasonCannotStart
		}
		if reason != "" {
			return &task.Problem{Reason: reason, Message: fmt.Sprintf("Pod %q: %s", pod.Name, words), Retriable: true}
		}
	}
	return nil
}
