package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
)

// LastWords is what etcd says of why it ends, in its log as JSON: the last line of the gravest level.
func LastWords(c corev1.ContainerStatus, otherwise string) string {
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
	Words string
	// IsStarting says that nothing is wrong with it so far, and isCrash that etcd ends each time that it is started.
	IsStarting, IsCrash bool
}

// problemOfContainers is what keeps the containers of a member from running: also those that admission has added, for
// which etcd may wait.
func problemOfContainers(m *Member, now time.Time) obstacle {
	for _, c := range pods.Statuses(m.Pod) {
		crash, loops := pods.CrashLoop(c, now)
		reason, words := pods.CannotStart(m.Pod, c)
		isEtcd := c.Name == objects.ContainerName
		switch {
		case !isEtcd && m.Follows:
		case !isEtcd && loops:
			return obstacle{Words: fmt.Sprintf("its container %q is crash-looping: %s", c.Name, crash.LastWords)}
		case loops:
			// Not how often: what stays as it is, is not written again and again.
			if words := LastWords(c, crash.LastWords); words != "" {
				return obstacle{Words: "etcd is crash-looping: " + words, IsCrash: true}
			}
			return obstacle{Words: "etcd is crash-looping", IsCrash: true}
		case reason != "":
			return obstacle{Words: words}
		}
	}
	return obstacle{}
}

// problemOfPod is what keeps the pod of a member from running, or that it is starting.
func problemOfPod(m *Member, now time.Time) obstacle {
	if m.Pod == nil {
		return obstacle{Words: "it has no pod"}
	}
	if words := pods.OnSilentNodes(*m.Pod); words != "" && !m.Follows {
		return obstacle{Words: "its " + words}
	}
	if problem := problemOfContainers(m, now); problem.Words != "" {
		return problem
	}
	isGated := pods.IsGated(m.Pod, objects.Gate)
	if words := pods.Unschedulable(m.Pod); words != "" && !isGated {
		return obstacle{Words: "its pod " + words}
	}
	waits := m.Pod.Spec.NodeName == "" && !isGated && now.Sub(m.Pod.CreationTimestamp.Time) > slowBinding
	switch {
	case waits && m.Claim != nil && m.Claim.Status.Phase == corev1.ClaimPending:
		return obstacle{Words: fmt.Sprintf("its volume is not bound: kubectl describe pvc %s may say why", m.Claim.Name)}
	case objects.IsEnding(m.Pod):
		return obstacle{Words: "its pod is ending"}
	}
	return obstacle{Words: "its pod is starting", IsStarting: true}
}

// problemOf is what keeps a member from serving. doubt is what may be wrong with the certificates.
func problemOf(m *Member, doubt string, asksElsewhere bool) obstacle {
	switch {
	case m.IsForeign() && asksElsewhere && !m.Follows:
		return obstacle{Words: "it does not answer at spec.joinFrom.etcdEndpoints as one that follows the leader"}
	case m.IsForeign():
		return obstacle{}
	case !m.PodProblem.IsStarting:
		return m.PodProblem
	case m.Follows:
		return obstacle{}
	case errors.Is(m.Answer.Err, session.ErrNoAddress):
		return m.PodProblem
	case m.IsDefragmenting():
		return obstacle{Words: m.Answer.Err.Error()}
	case !m.HasAnswered():
		return obstacle{Words: "it does not answer: " + status.Shortened(m.Answer.Err.Error())}
	case m.ID != 0 && m.Answer.Status.ID != m.ID:
		return obstacle{Words: fmt.Sprintf("it says that it is member %s of cluster %s, not member %s: its data is that of another member", m.Answer.Status.ID, m.Answer.Status.ClusterID, m.ID)}
	case doubt != "":
		return obstacle{Words: "it has no leader, or another one than the others; " + doubt}
	}
	return obstacle{Words: "it has no leader, or another one than the others"}
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
