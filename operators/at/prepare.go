package at

import (
	"cmp"
	"time"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// This file decides about pods that are made before their time, so that at the instant
// nothing is left to be done but to remove their gate.

// lead is how long before its time the pod of a first attempt is made, at most.
const lead = 30 * time.Second

// leadOf is shorter for an At that has not long to wait: it is not prepared for most of that time, and so may be changed
// at no cost. A process needs all the time that there is: for its node, its image, and its sandbox.
func leadOf(at *atv1alpha1.At, due time.Time) time.Duration {
	switch own := at.Spec.PrepareSeconds; {
	case own != nil && at.Spec.Prepare != atv1alpha1.PrepareNode: // whose placeholder it is for
		return seconds(*own)
	case at.Spec.Prepare == atv1alpha1.PrepareProcess:
		return lead
	}
	return min(lead, max(0, due.Sub(at.CreationTimestamp.Time)/4))
}

// isPrepared says whether the pod that status names as prepared is the only one whose gate
// may be removed.
func isPrepared(at *atv1alpha1.At) bool {
	return at.Status.Phase == atv1alpha1.Pending && at.Status.PreparedPodUID != ""
}

// cannotPrepare says whether preparing has failed for the At as it is: until it is due, that is not tried again.
func cannotPrepare(at *atv1alpha1.At) bool {
	return at.Status.Reason == reasonNotPrepared && at.Status.ObservedGeneration == at.Generation
}

// getsPod says whether the first attempt's pod is made before its time. With Node, only the placeholder may have
// failed.
func getsPod(at *atv1alpha1.At) bool {
	return at.Spec.Prepare == atv1alpha1.PrepareNode || at.Spec.Prepare != atv1alpha1.PrepareNone && !cannotPrepare(at)
}

// awaitDue prepares the first attempt when its time is near, and otherwise waits.
func awaitDue(at *atv1alpha1.At, seen observation, due time.Time, wakes earliest) step {
	wakes.add(due)
	if at.Status.Attempts > 0 || at.Status.NextAttemptTime != nil || !getsPod(at) {
		return unclaimed(seen, waiting(at, due), wakes.time)
	}
	if from := due.Add(-leadOf(at, due)); seen.now.Before(from) && !isPrepared(at) {
		wakes.add(from)
		return unclaimed(seen, waiting(at, due), wakes.time)
	}
	switch pod := seen.pod; {
	case seen.blocked, pod != nil && !pod.DeletionTimestamp.IsZero():
		return step{news: waiting(at, due), wakeAt: wakes.time} // its deletion is an event
	case pod == nil:
		return step{action: createEarly, news: waiting(at, due), wakeAt: wakes.time}
	case !isMadeFrom(pod, at), gateIndex(pod) < 0 && !isPrepared(at):
		return unclaimed(seen, waiting(at, due), wakes.time)
	case isPrepared(at):
		return step{news: prepared(at, pod, due), wakeAt: wakes.time}
	default:
		return step{action: prepare, pod: pod, news: prepared(at, pod, due), wakeAt: wakes.time}
	}
}

// followPrepared takes a prepared pod to its claim, or withdraws it. Its gate is removed
// before the claim and not after it, so what the pod is like decides: without its gate it
// has begun to run, whatever the clock says by now and whatever was changed meanwhile; with
// the mark of a withdrawn one it never will. The one excludes the other (removeGate). If the
// pod is gone, it may have been either.
func followPrepared(at *atv1alpha1.At, seen observation) step {
	pod := seen.pod
	instant, isProcess := waitsUntil(pod)
	switch {
	case !hasUID(pod, at.Status.PreparedPodUID):
		return step{news: outcome(at, seen, podGone)}
	case gateIndex(pod) < 0 && isProcess:
		return followProcess(at, seen, instant)
	case gateIndex(pod) < 0:
		return step{action: claim, pod: pod, news: runningAs(at, pod)}
	}
	next := start(at, seen)
	switch {
	case isWithdrawn(pod), !pod.DeletionTimestamp.IsZero():
		if next.action != discard {
			next.news = news{} // which is that of a prepared pod
		}
		next.action, next.pod = reject, pod
	case next.action == discard:
		// Nothing is stored before the mark is there.
		next.action, next.news = withdraw, news{reason: cmp.Or(next.news.reason, reasonChanged)}
	case next.action == claim:
		_, deadline, _ := window(at)
		next.action, next.news, next.wakeAt = release, news{}, deadline
	case isProcess: // it is to be there before its instant
		next.wakeAt = instant.Add(-leadOf(at, instant)) // the clock may have been set back
		if !seen.now.Before(next.wakeAt) {
			next.action, next.pod, next.wakeAt = release, pod, instant
		}
	}
	return next
}
