package view

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
)

// killed is the exit code of a process that was killed: it has said nothing of why it ends.
const killed = 137

// LastWords is what etcd says of why it has ended, or ends each time; empty if it does not say. What else it logs may have
// users' keys in it.
func LastWords(c corev1.ContainerStatus) string {
	last := c.LastTerminationState.Terminated
	if c.State.Terminated != nil {
		last = c.State.Terminated
	}
	if last == nil {
		return ""
	}
	said := reasonToEnd(last)
	switch {
	case said != "":
	case last.ExitCode == killed:
		said = strings.TrimSuffix("it was killed "+last.Reason, " Error")
	default:
		said = pods.LastWords(besideLog(last.Message))
	}
	return status.Shortened(said)
}

// logEntry is a line of etcd's log as JSON: since 3.4. Panic is of those of the job that has ended by one.
type logEntry struct{ Level, Msg, Error, Panic string }

// formerLog is a line of the log of etcd before 3.4: time, level, and what it says. C is for both fatal and panic.
var formerLog = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ ([A-Z]) \| (.*)`)

// cutError is the error at the end of a line of the log whose beginning is cut off: the kubelet keeps 2048 bytes, and
// after the line of a panic comes the trace. Quotes of users are escaped in it.
var cutError = regexp.MustCompile(`"error":"((?:[^"\\]|\\.)*)","stacktrace":"(?:[^"\\]|\\.)*"\}$`)

// reasonToEnd is what etcd ends for: the last line of its log that is fatal or a panic, or what Go says of the panic; empty
// if there is none. Nobody else writes those: what users have in keys and values is within lines. Of a panic that was
// recovered, and led to another one, Go says the first at the beginning of a line.
func reasonToEnd(t *corev1.ContainerStateTerminated) (said string) {
	if t.ExitCode == killed || t.ExitCode == 0 {
		return ""
	}
	before := ""
	for line := range strings.Lines(t.Message) {
		line = strings.TrimRight(line, " \n")
		var entry logEntry
		if found := formerLog.FindStringSubmatch(line); found != nil && found[1] == "C" {
			said = found[2]
		} else if json.Unmarshal([]byte(line), &entry) == nil && (entry.Level == "fatal" || entry.Level == "panic") {
			said = entry.Msg
			if cause := cmp.Or(entry.Error, entry.Panic); cause != "" {
				said += ": " + cause
			}
		} else if words, is := strings.CutPrefix(line, "panic: "); is && !strings.HasPrefix(said, words) {
			said, _, _ = strings.Cut(words, " [recovered")
			if cut := cutError.FindStringSubmatch(before); cut != nil {
				said += ": " + cut[1]
			}
		}
		before = line
	}
	if said == "" && strings.Contains(t.Message, "goroutine ") { // a trace that is so long that nothing else is left
		said = "a panic"
		if function := panickedIn(t.Message); function != "" {
			said += " in " + function
		}
		said += ": kubectl logs --previous has it"
	}
	return said
}

// frame is the line of a trace that has a function, with its arguments. Its name is after the path of its package.
var frame = regexp.MustCompile(`^(?:[^\s(]*/)?([^/\s]+)\(.*\)$`)

// panickedIn is the function whose panic was the first in a trace, such as etcdserver.v2ToV3Request; empty if the trace has
// lost its beginning. The last panic comes first, and what has called for one after it, and after the log's own functions. The
// first line may be the end of one of the log.
func panickedIn(trace string) (function string) {
	isNext := false
	for _, line := range strings.Split(trace, "\n")[1:] {
		switch found := frame.FindStringSubmatch(line); {
		case found == nil:
		case found[1] == "panic" || strings.HasPrefix(found[1], "zap"):
			isNext = true
		case isNext:
			function, isNext = found[1], false
		}
	}
	return function
}

// besideLog are the lines that are none of etcd's log, such as what is wrong with its flags.
func besideLog(message string) string {
	var lines []string
	for line := range strings.Lines(message) {
		if json.Unmarshal([]byte(line), &logEntry{}) != nil && !formerLog.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// slowBinding is for how long a volume that is not bound is no problem.
const slowBinding = 10 * time.Second

// obstacle is what keeps a member from serving, in words that do not change with every try; none if nothing does.
type obstacle struct {
	Words string
	// IsStarting says that nothing is wrong with it so far, and IsCrash that etcd ends each time that it is started.
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
			if words := LastWords(c); words != "" {
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
	if words, _ := pods.Unprepared(m.Pod, nil, now); words != "" {
		return obstacle{Words: "its " + words}
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

// lostWords are what etcd says of why it ends when it cannot start because its data is not there, or is
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
func saysLost(pod *corev1.Pod) bool { return saysAtEnd(pod, lostWords) }

// lowWords are what etcd says of why it ends when the cluster has a higher version than its own.
var lowWords = []string{"server version is lower than determined cluster version"}

// IsTooLow says that etcd ends because the cluster has a higher version than its own: a downgrade was canceled before
// the member was restarted for it.
func (m *Member) IsTooLow() bool { return m.Pod != nil && saysAtEnd(m.Pod, lowWords) }

// v2Words are what etcd says of why it ends, from 3.6 on, when its data has what etcd's API v2 has written: in a snapshot of
// its log, or one that the leader sends; in its log; and in its log, where the trace leaves no room for words.
var v2Words = []string{"disallowed custom content in v2store", "disallowed v2 WAL", "a panic in etcdserver.v2ToV3Request"}

// HasV2 says that etcd ends because its data has what etcd's API v2 has written.
func (m *Member) HasV2() bool { return m.Pod != nil && saysAtEnd(m.Pod, v2Words) }

// saysAtEnd says whether a container that does not run says one of these for what it has ended.
func saysAtEnd(pod *corev1.Pod, words []string) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != objects.ContainerName || c.State.Running != nil {
			continue
		}
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if state.Terminated == nil {
				continue
			}
			said := reasonToEnd(state.Terminated)
			if slices.ContainsFunc(words, func(one string) bool { return strings.Contains(said, one) }) {
				return true
			}
		}
	}
	return false
}
