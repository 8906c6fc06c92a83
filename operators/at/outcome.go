package at

import (
	"slices"
	"time"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// This file decides what follows the end of an attempt.

// outcome is what the end of an attempt leads to: the end of the run, or
// another attempt.
func outcome(at *atv1alpha1.At, seen observation, r result) news {
	if r.finished.IsZero() {
		r.finished = seen.now
	}
	if hasUID(seen.pod, at.Status.PodUID) && !isMadeFrom(seen.pod, at) {
		r.message += ". " + lateChange
		r.final = true // a further attempt would be another command's
	}
	if r.succeeded {
		return news{phase: atv1alpha1.Done, reason: r.reason, message: r.message, result: &r}
	}
	isFinal := r.final || r.exitCode != nil && slices.Contains(at.Spec.FinalExitCodes, *r.exitCode)
	if at.Status.Attempts > at.Spec.BackoffLimit || isFinal {
		return news{phase: atv1alpha1.Failed, reason: r.reason, message: r.message, result: &r}
	}
	next := seen.now.Add(backoff(at.Status.Attempts))
	return news{phase: atv1alpha1.Running, reason: r.reason, message: r.message, result: &r, nextAttempt: next}
}

// refused is what follows when a node has refused the pod of an attempt, or has ended it before the command
// began: it was none, and is made again, whatever backoffLimit says.
func refused(at *atv1alpha1.At, seen observation) news {
	say := news{phase: atv1alpha1.Running, reason: reasonNodeRefused, message: nodeRefuses(seen.pod), isRefused: true}
	if !hasNotStarted(seen.pod, seen) {
		say = notPrepared(seen.pod)
		say.phase, say.isRefused = atv1alpha1.Running, true
	}
	if !isMadeFrom(seen.pod, at) { // it has not begun after all, so the change was not too late
		say.phase = atv1alpha1.Pending
		if say.reason == reasonNotPrepared {
			say.reason, say.message = reasonChanged, "The process has ended before the command began, so the last change of the spec takes effect"
		}
		return say
	}
	wait := firstWait
	if at.Status.PendingSince != nil { // not the first one
		wait = min(max(seen.now.Sub(at.Status.PendingSince.Time), firstWait), longestBackoff)
	}
	say.nextAttempt = seen.now.Add(wait)
	return say
}

// refusedTooLong is the end of an attempt that nodes have refused until its deadline. It
// counts, as one that has waited on a node.
func refusedTooLong(at *atv1alpha1.At, seen observation) news {
	counted := at.DeepCopy()
	counted.Status.Attempts++
	return outcome(counted, seen, pendingTooLong(at, at.Status.Reason, at.Status.Problem))
}

// backoff is the wait after that many failed attempts.
func backoff(attempts int32) time.Duration {
	wait := firstBackoff
	for range attempts - 1 {
		if wait *= 2; wait >= longestBackoff {
			return longestBackoff
		}
	}
	return wait
}
