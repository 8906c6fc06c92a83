package at

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
)

// Failed attempts are tried again after firstBackoff, then twice that, and so
// on up to longestBackoff, as Jobs are. A variable, so that the sweep need not
// wait.
var firstBackoff = 10 * time.Second

const (
	longestBackoff = 6 * time.Minute

	// A pod that was refused, or whose name is taken, is tried again after a wait
	// that doubles, within these bounds.
	firstRefusal, longestRefusal = 5 * time.Second, time.Minute

	// firstWait is how long an attempt whose pod its node has refused waits at least until it
	// is made again. It waits as long as it has waited in all, up to longestBackoff.
	firstWait = time.Second

	// problem is how long a claimed pod may take to start its command before
	// status says what it waits for. Most reasons pass by themselves sooner.
	problem = 10 * time.Second
	// slowStart is the same where all goes well, but slowly.
	slowStart = time.Minute

	// A pod that the cache does not show is looked at this often: soon while it
	// waits for its gate, and then from time to time.
	hiddenGated, hiddenPoll = time.Second, 10 * time.Second

	// killGrace is how long the kubelet gets to end a pod that has not started and is past
	// its active deadline before the result is written without it, and one that was deleted
	// before that is reported.
	killGrace = 45 * time.Second
	// reportGrace is how long it gets to report that it has ended a command, after the
	// grace period of the pod.
	reportGrace = 15 * time.Second

	// shortestDeadline is the least active deadline, in seconds, that the API server
	// takes. A pod gets it when its remaining containers are to stop.
	shortestDeadline int64 = 1
)

// action is the one thing that a step does to the cluster, besides its news for
// status.
type action string

const (
	// hold does nothing.
	hold action = ""
	// create makes the pod of the next attempt, gated.
	create action = "create"
	// createEarly makes the pod of the first attempt before its time, gated.
	createEarly action = "create early"
	// prepare stores the UID of such a pod in status, as that of the prepared one, and does
	// nothing else.
	prepare action = "prepare"
	// claim stores the pod's UID in status, as that of the attempt's, and does nothing else.
	claim action = "claim"
	// release removes the scheduling gate of the claimed pod, or of the prepared one.
	release action = "release"
	// reject stores in status that a pod is not to be claimed, and does nothing else.
	reject action = "reject"
	// discard deletes a rejected pod.
	discard action = "discard"
	// withdraw marks a claimed or prepared pod, unless its gate was removed meanwhile: from
	// then on no operator removes it. What follows is stored next, and then the pod is deleted,
	// so what was decided outlives a conflict, and the operator.
	withdraw action = "withdraw"
	// takeBack restores the marks of a pod by which the operator finds it.
	takeBack action = "take back"
	// stop ends the remaining containers of a finished attempt's pod: sidecars, and a
	// command that nobody waits for any more.
	stop action = "stop"
	// abandon deletes the pod of a finished attempt that never started.
	abandon action = "abandon"
	// createPlaceholder makes the pod that finds a node for the first attempt, and
	// removePlaceholder deletes it.
	createPlaceholder action = "create placeholder"
	removePlaceholder action = "remove placeholder"
	// remove deletes a finished At that was kept long enough.
	remove action = "remove"
)

// step is what to do next, and what there is to say about it.
type step struct {
	loop.Plan

	action action
	// pod is the one that the action is about, if it is about one.
	pod *corev1.Pod
	// news is what changes in status. The zero value changes nothing.
	news news
	// wakeAt is when to look again although no event comes; zero for never.
	wakeAt time.Time
}

// news is what a step has to say in status.
type news struct {
	phase           atv1alpha1.Phase
	reason, message string
	result          *result
	nextAttempt     time.Time
	// isRefused is true when the node has refused the pod of the attempt, which is made again.
	isRefused bool
}

// decide finds the next step for an At. It is the specification of the operator: all that
// it depends on is in its arguments.
func decide(at *atv1alpha1.At, seen observation) step {
	if !at.DeletionTimestamp.IsZero() {
		return step{} // owner references delete the pods
	}
	next := withPlaceholder(at, seen, decideFor(at, seen))
	isRejected := next.pod != nil && next.pod.UID == at.Status.DiscardedPodUID
	switch {
	case next.action == discard && !isRejected:
		// Another operator may be about to claim it, and its cache of pods be too late to
		// show that it is gone. Status decides, as it does about a claim.
		next.action = reject
		if at.Status.Attempts > 0 || next.news.result != nil {
			next.news = news{} // said with the deletion: afterwards no pod of this name is looked for
		}
	case isRejected && (next.action == claim || next.action == prepare):
		next.action, next.news = discard, news{}
	}
	if seen.hidden {
		next.wakeAt = lookAgain(seen, next.wakeAt)
	}
	if next.action != takeBack && lacksMarks(at, seen) {
		wakes := earliest{next.wakeAt}
		wakes.add(seen.takenBackUntil)
		next.wakeAt = wakes.time
	}
	return next
}

func decideFor(at *atv1alpha1.At, seen observation) step {
	switch {
	case lacksMarks(at, seen) && !seen.now.Before(seen.takenBackUntil):
		return step{action: takeBack, pod: seen.pod, wakeAt: seen.now.Add(hiddenGated)}
	case at.Status.Phase.Finished():
		return afterwards(at, seen)
	case isClaimed(at):
		return watchOver(at, seen)
	case isPrepared(at):
		return followPrepared(at, seen)
	default:
		return start(at, seen)
	}
}

// lacksMarks says whether the pod has lost marks that are to be restored. One that
// is over needs its owner only.
func lacksMarks(at *atv1alpha1.At, seen observation) bool {
	if seen.pod == nil || seen.blocked || !seen.pod.DeletionTimestamp.IsZero() {
		return false
	}
	over := at.Status.Phase.Finished() && pods.IsOver(seen.pod)
	return metav1.GetControllerOf(seen.pod) == nil || !over && !isShown(seen.pod)
}

// lookAgain is when to look at a pod that has no events.
func lookAgain(seen observation, wakeAt time.Time) time.Time {
	wait := hiddenPoll
	if seen.pod != nil && gateIndex(seen.pod) >= 0 {
		wait = hiddenGated
	}
	wakes := earliest{wakeAt}
	wakes.add(seen.now.Add(wait))
	return wakes.time
}

// isClaimed says whether an attempt is under way: its pod is the only one whose gate may
// be removed.
func isClaimed(at *atv1alpha1.At) bool {
	return at.Status.Phase == atv1alpha1.Running && at.Status.NextAttemptTime == nil
}

// start takes an attempt up to its claim: create the pod, then claim it. Until
// then everything can still change.
func start(at *atv1alpha1.At, seen observation) step {
	due, deadline, err := window(at)
	first := at.Status.Attempts == 0
	switch {
	case err != nil:
		return unclaimed(seen, news{phase: phaseSoFar(at), reason: reasonInvalid, message: err.Error()}, time.Time{})
	case isTooLate(deadline, seen.now, first):
		if first {
			return unclaimed(seen, missed(at, seen, deadline, notStarted(at, deadline)), time.Time{})
		}
		return unclaimed(seen, tooLong(at), time.Time{})
	case at.Spec.Suspend && first:
		return unclaimed(seen, news{phase: atv1alpha1.Pending, reason: reasonSuspended, message: "Suspended: it starts at its time, or at once if that has passed, when suspend is false"}, deadline)
	}
	wakes := earliest{deadline}
	if at.Status.PendingSince != nil && at.Spec.PendingDeadlineSeconds != nil {
		limit := pendingDeadline(at, nil)
		if !seen.now.Before(limit) {
			return unclaimed(seen, refusedTooLong(at, seen), time.Time{})
		}
		wakes.add(limit)
	}
	// The last attempt's command is not to run beside the next one's.
	if action := cleanUp(seen.last); action != hold {
		return step{action: action, pod: seen.last, wakeAt: wakes.time}
	}
	switch {
	case seen.now.Before(due):
		return awaitDue(at, seen, due, wakes)
	case seen.last != nil && !ended(seen.last):
		return step{wakeAt: wakes.time} // its end is an event
	case seen.blocked:
		return step{news: blocked(at, seen), wakeAt: wakes.time} // its deletion is an event
	case seen.pod != nil && !seen.pod.DeletionTimestamp.IsZero():
		return step{wakeAt: wakes.time} // so is this
	case seen.pod == nil:
		return step{action: create, wakeAt: wakes.time}
	case !isMadeFrom(seen.pod, at):
		return step{action: discard, pod: seen.pod, wakeAt: wakes.time} // and this
	default:
		return step{action: claim, pod: seen.pod, news: running}
	}
}

// unclaimed says why an attempt does not start, and discards its pod if there
// is one.
func unclaimed(seen observation, why news, wakeAt time.Time) step {
	next := step{news: why, wakeAt: wakeAt}
	if seen.pod != nil && seen.pod.DeletionTimestamp.IsZero() && !seen.blocked {
		next.action, next.pod = discard, seen.pod
	}
	return next
}

// isTooLate says whether an attempt may not start any more. At its deadline, a
// first attempt still may; the time that all attempts have together is over.
func isTooLate(deadline, now time.Time, first bool) bool {
	return !deadline.IsZero() && (now.After(deadline) || !first && now.Equal(deadline))
}

// window is when the next attempt may start: not before due, and not after
// deadline, if there is one.
func window(at *atv1alpha1.At) (due, deadline time.Time, err error) {
	next := at.Status.NextAttemptTime
	if at.Status.Attempts > 0 {
		if at.Spec.ActiveDeadlineSeconds != nil {
			deadline = activeDeadline(at)
		}
		return next.Time, deadline, nil
	}
	if due, err = scheduledTime(at); err != nil {
		return due, deadline, err
	}
	if at.Spec.StartingDeadlineSeconds != nil {
		deadline = due.Add(seconds(*at.Spec.StartingDeadlineSeconds))
	}
	if next != nil && next.After(due) { // its node has refused the first attempt's pod
		due = next.Time
	}
	return due, deadline, nil
}

// watchOver follows a claimed attempt to its result.
func watchOver(at *atv1alpha1.At, seen observation) step {
	pod := seen.pod
	switch {
	case pod == nil:
		return step{news: outcome(at, seen, podGone)}
	case hasNotStarted(pod, seen), neverBegan(pod, seen):
		return step{news: refused(at, seen)}
	case ended(pod) && !isEnding(pod):
		return step{news: outcome(at, seen, resultOf(pod, seen.output))}
	case isWithdrawn(pod):
		return step{news: withdrawal(at, seen)}
	case gateIndex(pod) >= 0 && pod.DeletionTimestamp.IsZero():
		return releaseOrWithdraw(at, seen)
	}

	var wakes earliest
	isStopping := false
	if at.Spec.ActiveDeadlineSeconds != nil {
		deadline, limit := runDeadline(at, pod), killDeadline(at, pod)
		switch {
		case !seen.now.Before(limit):
			return step{news: outcome(at, seen, result{reason: reasonDeadline, message: deadlineMessage(at) + notReported(pod), final: true})}
		case !started(pod):
		case seen.now.Before(deadline):
			wakes.add(deadline)
		case stopsTooLate(pod, deadline):
			return step{action: stop, pod: pod, wakeAt: limit}
		case seen.now.Before(deadline.Add(problem)):
			wakes.add(deadline.Add(problem))
		default:
			isStopping = true
		}
		wakes.add(limit)
	}
	if words := pods.OnSilentNodes(*pod); words != "" {
		return step{wakeAt: wakes.time, news: nodeSilent(words)}
	}
	if d := pod.DeletionTimestamp; d != nil {
		if !seen.now.Before(d.Add(killGrace)) {
			return step{wakeAt: wakes.time, news: notEnded(pod)}
		}
		wakes.add(d.Add(killGrace))
	}
	if isStopping {
		return step{wakeAt: wakes.time, news: stopping(at, pod)}
	}
	if started(pod) {
		return step{wakeAt: wakes.time, news: runningAs(at, pod)}
	}

	if at.Spec.PendingDeadlineSeconds != nil {
		limit := pendingDeadline(at, pod)
		if !seen.now.Before(limit) {
			why, message := waitsFor(pod)
			return step{news: outcome(at, seen, pendingTooLong(at, why, message))}
		}
		wakes.add(limit)
	}
	say, look := slow(pod, seen.now)
	wakes.add(look)
	if _, is := unavailable(pod); is && say.phase != "" && !isMarked(pod) {
		return withoutProcess(pod, wakes.time)
	}
	return step{wakeAt: wakes.time, news: say}
}

// isOverdue says whether the clock ends an attempt whose pod has not ended.
func isOverdue(at *atv1alpha1.At, pod *corev1.Pod, now time.Time) bool {
	late := at.Spec.ActiveDeadlineSeconds != nil && !now.Before(killDeadline(at, pod))
	stuck := at.Spec.PendingDeadlineSeconds != nil && !started(pod) && !now.Before(pendingDeadline(at, pod))
	return !ended(pod) && (late || stuck)
}

// afterwards keeps a finished At finished, stops the remaining containers of its pod, and
// removes the At when its time to live is over.
func afterwards(at *atv1alpha1.At, seen observation) step {
	var removeAt time.Time
	if ttl := at.Spec.TTLSecondsAfterFinished; ttl != nil && at.Status.CompletionTime != nil {
		removeAt = at.Status.CompletionTime.Add(seconds(*ttl))
		if !seen.now.Before(removeAt) {
			return step{action: remove}
		}
	}
	return step{action: cleanUp(seen.pod), pod: seen.pod, wakeAt: removeAt}
}

// cleanUp says what ends the rest of a finished attempt's pod.
func cleanUp(pod *corev1.Pod) action {
	switch {
	case pod == nil || !pod.DeletionTimestamp.IsZero() || pods.IsOver(pod):
		return hold
	case !started(pod) && !ended(pod):
		return abandon
	case isStopped(pod):
		return hold
	case sidecarsRun(pod), !ended(pod):
		return stop
	}
	return hold
}

// isStopped says whether the kubelet was requested to end a pod's remaining containers.
func isStopped(pod *corev1.Pod) bool {
	return pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds == shortestDeadline
}

func activeDeadline(at *atv1alpha1.At) time.Time {
	return at.Status.StartTime.Add(seconds(*at.Spec.ActiveDeadlineSeconds))
}

// seconds is a number of seconds as a duration, the longest one if it is more.
func seconds(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(n, most)) * time.Second
}

// earliest collects instants and keeps the first. A zero one is never.
type earliest struct{ time time.Time }

func (e *earliest) add(t time.Time) {
	if !t.IsZero() && (e.time.IsZero() || t.Before(e.time)) {
		e.time = t
	}
}
