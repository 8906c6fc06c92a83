package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
)

// report reports a problem, unless there is one already.
func (p *plan) report(what status.Problem) {
	if p.problem == nil {
		p.problem = &what
	}
}

// stall reports what only the user can end.
func (p *plan) stall(reason, format string, args ...any) {
	p.report(status.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// writeProblem reports a write that failed.
func writeProblem(failure error) *status.Problem {
	p := apply.Problem(failure, "EtcdCluster")
	if failed, ok := errors.AsType[*loop.WriteError](failure); ok && p.Reason == apply.ReasonRetrying {
		if _, isRequest := failed.Write.(loop.Call); isRequest {
			p.Message = "A request to etcd failed and is retried: " + status.Shortened(failure.Error())
		}
	}
	return p
}

// lastWords is what etcd says of why it ends, in its log as JSON: the last line of the gravest level.
func lastWords(c corev1.ContainerStatus, otherwise string) string {
	last := c.LastTerminationState.Terminated
	if c.State.Terminated != nil {
		last = c.State.Terminated
	}
	if last == nil {
		return otherwise
	}
	said := ""
	for line := range strings.Lines(last.Message) {
		var entry struct{ Level, Msg, Error string }
		if json.Unmarshal([]byte(line), &entry) != nil || entry.Level != "fatal" && entry.Level != "panic" && entry.Level != "error" {
			continue
		}
		said = entry.Msg
		if entry.Error != "" {
			said += ": " + entry.Error
		}
	}
	switch {
	case said != "":
		return status.Shortened(said)
	case strings.Contains(last.Message, "goroutine "):
		return "a panic: kubectl logs --previous has it"
	}
	return otherwise
}

// slowBinding is for how long a volume that is not bound is no problem.
const slowBinding = 10 * time.Second

// obstacle is what keeps a member from serving, in words that do not change with every try; none if nothing does.
type obstacle struct {
	words string
	// isStarting says that nothing is wrong with it so far, and isCrash that etcd ends each time that it is started.
	isStarting, isCrash bool
}

// problemOfContainers is what keeps the containers of a member from running: also those that admission has added, for
// which etcd may wait.
func problemOfContainers(m *member, now time.Time) obstacle {
	for _, c := range pods.Statuses(m.pod) {
		crash, loops := pods.CrashLoop(c, now)
		reason, words := pods.CannotStart(m.pod, c)
		isEtcd := c.Name == objects.ContainerName
		switch {
		case !isEtcd && m.follows:
		case !isEtcd && loops:
			return obstacle{words: fmt.Sprintf("its container %q is crash-looping: %s", c.Name, crash.LastWords)}
		case loops:
			// Not how often: what stays as it is, is not written again and again.
			if words := lastWords(c, crash.LastWords); words != "" {
				return obstacle{words: "etcd is crash-looping: " + words, isCrash: true}
			}
			return obstacle{words: "etcd is crash-looping", isCrash: true}
		case reason != "":
			return obstacle{words: words}
		}
	}
	return obstacle{}
}

// problemOfPod is what keeps the pod of a member from running, or that it is starting.
func problemOfPod(m *member, now time.Time) obstacle {
	if m.pod == nil {
		return obstacle{words: "it has no pod"}
	}
	if words := pods.OnSilentNodes(*m.pod); words != "" && !m.follows {
		return obstacle{words: "its " + words}
	}
	if problem := problemOfContainers(m, now); problem.words != "" {
		return problem
	}
	isGated := pods.IsGated(m.pod, objects.Gate)
	if words := pods.Unschedulable(m.pod); words != "" && !isGated {
		return obstacle{words: "its pod " + words}
	}
	waits := m.pod.Spec.NodeName == "" && !isGated && now.Sub(m.pod.CreationTimestamp.Time) > slowBinding
	switch {
	case waits && m.claim != nil && m.claim.Status.Phase == corev1.ClaimPending:
		return obstacle{words: fmt.Sprintf("its volume is not bound: kubectl describe pvc %s may say why", m.claim.Name)}
	case objects.IsEnding(m.pod):
		return obstacle{words: "its pod is ending"}
	}
	return obstacle{words: "its pod is starting", isStarting: true}
}

// problemOf is what keeps a member from serving. doubt is what may be wrong with the certificates.
func problemOf(m *member, doubt string) obstacle {
	switch {
	case m.isForeign():
		return obstacle{}
	case !m.podProblem.isStarting:
		return m.podProblem
	case m.follows:
		return obstacle{}
	case errors.Is(m.answer.Err, session.ErrNoAddress):
		return m.podProblem
	case m.isDefragmenting():
		return obstacle{words: m.answer.Err.Error()}
	case !m.hasAnswered():
		return obstacle{words: "it does not answer: " + status.Shortened(m.answer.Err.Error())}
	case m.ID != 0 && m.answer.Status.ID != m.ID:
		return obstacle{words: fmt.Sprintf("it says that it is member %s of cluster %s, not member %s: its data is that of another member", m.answer.Status.ID, m.answer.Status.ClusterID, m.ID)}
	case doubt != "":
		return obstacle{words: "it has no leader, or another one than the others; " + doubt}
	}
	return obstacle{words: "it has no leader, or another one than the others"}
}

// lostWords are what etcd says last when it cannot start because its data is not there, or is
// not what it was.
var lostWords = []string{
	"couldn't find local name", // of a member that was sealed
	"has already been bootstrapped",
	"crc mismatch",
	"walpb: crc",
	"wal: crc",
	"file is too small", // bbolt
	"invalid database",
	"failed to recover v3 backend from snapshot",
}

// saysLost says whether a container that cannot start says that its data is lost.
func saysLost(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != objects.ContainerName || c.State.Running != nil {
			continue
		}
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if state.Terminated == nil || state.Terminated.ExitCode == 0 {
				continue
			}
			for _, words := range lostWords {
				if strings.Contains(state.Terminated.Message, words) {
					return true
				}
			}
		}
	}
	return false
}
