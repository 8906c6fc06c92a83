// Package pods reads from the status of a pod what its user needs to know.
package pods

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// CrashLoopBackOff is the kubelet's reason for a container that waits to be
// started again, and the reason of a condition that reports a [Crash].
const CrashLoopBackOff = "CrashLoopBackOff"

const (
	// backOffEnds is after how long a container that runs gets no back-off any
	// more: the kubelet counts anew then. A run that lasted longer is no part of
	// a crash loop.
	backOffEnds = 10 * time.Minute
	// shortestRecovery is for how long at least a ready container has to run
	// after a crash, until it is not crash-looping any more.
	shortestRecovery = time.Minute
)

// Crash is a container that is crash-looping.
type Crash struct {
	Container string
	// Times is how often it has ended. It changes when the container ends, not
	// when it is started again.
	Times int32
	// ExitCode and Reason are those of the last end.
	ExitCode int32
	Reason   string
	// LastWords is what the program said last, if the kubelet knows: the
	// termination message, or the end of the log where the container has
	// terminationMessagePolicy FallbackToLogsOnError.
	LastWords string
	// Until is when a container that is ready counts as recovered, if nothing
	// happens until then. Zero for one that is not ready.
	Until time.Time
}

// CrashLoop says whether a container is crash-looping. The answer is the same at
// every turn of the loop: after a crash, while the kubelet waits, while the
// container runs again, and also while it is ready for a moment. A first crash
// is not a loop.
func CrashLoop(c corev1.ContainerStatus, now time.Time) (Crash, bool) {
	crash := Crash{Container: c.Name, Times: c.RestartCount}
	last := c.LastTerminationState.Terminated
	isLooping := false
	switch state := c.State; {
	case state.Waiting != nil && state.Waiting.Reason == CrashLoopBackOff:
		crash.Times++
		isLooping = true
	case state.Terminated != nil:
		crash.Times++
		last = state.Terminated
		isEnd := c.Ready // an init container that has ended well is ready
		isLooping = c.RestartCount > 0 && !isEnd && ranFor(last) < backOffEnds
	case state.Running != nil && c.RestartCount > 1 && last != nil && ranFor(last) < backOffEnds:
		recovered := state.Running.StartedAt.Add(backOffEnds)
		if c.Ready {
			recovered = state.Running.StartedAt.Add(min(max(2*ranFor(last), shortestRecovery), backOffEnds))
			crash.Until = recovered
		}
		isLooping = now.Before(recovered)
	}
	if !isLooping {
		return Crash{}, false
	}
	if last != nil {
		crash.ExitCode, crash.Reason, crash.LastWords = last.ExitCode, last.Reason, LastWords(last.Message)
	}
	return crash, true
}

func ranFor(end *corev1.ContainerStateTerminated) time.Duration {
	return end.FinishedAt.Sub(end.StartedAt.Time)
}

// String is the sentence for a condition: which container, how often, with which
// exit code, and the last words.
func (c Crash) String() string {
	verb := "crashed"
	if c.ExitCode == 0 {
		verb = "ended"
	}
	times := "once"
	if c.Times != 1 {
		times = fmt.Sprintf("%d times", c.Times)
	}
	text := fmt.Sprintf("container %q is crash-looping: it %s %s, last with exit code %d", c.Container, verb, times, c.ExitCode)
	switch c.Reason {
	case "", "Error", "Completed": // the exit code says that
	default:
		text += " (" + c.Reason + ")"
	}
	if c.LastWords != "" {
		text += ": " + c.LastWords
	}
	return text
}
