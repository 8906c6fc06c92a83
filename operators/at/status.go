package at

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/kit/words"
)

// The reasons in status and in events that are not Kubernetes' own.
const (
	reasonScheduled       = "Scheduled"
	reasonPrepared        = "Prepared"
	reasonNotPrepared     = "NotPrepared"
	reasonSuspended       = "Suspended"
	reasonInvalid         = "InvalidSchedule"
	reasonConflict        = "PodConflict"
	reasonRefused         = "PodRefused"
	reasonNodeRefused     = "NodeRefused"
	reasonRunning         = "Running"
	reasonChangedTooLate  = "ChangedTooLate"
	reasonStarting        = "Starting"
	reasonCrashLoop       = "CrashLoopBackOff"
	reasonGated           = "SchedulingGated"
	reasonStopping        = "Stopping"
	reasonWithdrawn       = "Withdrawn"
	reasonNodeSilent      = pods.NodeNotResponding
	reasonUnschedulable   = "Unschedulable"
	reasonCompleted       = "Completed"
	reasonCommandFailed   = "CommandFailed"
	reasonPodFailed       = "PodFailed"
	reasonPodDeleted      = "PodDeleted"
	reasonUnknown         = "ResultUnknown"
	reasonDeadline        = "DeadlineExceeded"
	reasonPendingDeadline = "PendingDeadlineExceeded"
	reasonMissed          = "StartingDeadlineExceeded"
)

// running is said when an attempt is claimed, and still holds when its command
// has started, so that the start costs no status write.
var running = news{phase: atv1alpha1.Running, reason: reasonRunning, message: "The command is running or about to"}

// lateChange is what there is to say of a change that the API server has accepted when the
// gate of the pod had been removed, and the claim not been stored.
const lateChange = "The last change of the spec came when the run had begun, and has no effect"

// runningAs is running, unless the spec has changed too late for it.
func runningAs(at *atv1alpha1.At, pod *corev1.Pod) news {
	if isMadeFrom(pod, at) {
		return running
	}
	return news{phase: atv1alpha1.Running, reason: reasonChangedTooLate, message: running.message + ". " + lateChange}
}

// podGone is the result of an attempt whose pod may have run.
var podGone = result{
	reason: reasonUnknown, message: "The pod was deleted before its result was stored: whether the command ran, and how it ended, is not known", final: true,
}

// reasonChanged marks a prepared pod that is withdrawn because the spec has changed, and is said for a moment when the
// end of a process shows that the change came in time.
const reasonChanged = "SpecChanged"

// nodeSilent is what there is to say while the node of a run does not answer.
func nodeSilent(words string) news {
	return news{phase: atv1alpha1.Running, reason: reasonNodeSilent,
		message: status.Shortened("Whether the command still runs, or has ended, is not known: " + words)}
}

// notEnded is what there is to say of a pod that was deleted, and that its node does not end.
func notEnded(pod *corev1.Pod) news {
	return news{phase: atv1alpha1.Running, reason: reasonNodeSilent, message: fmt.Sprintf(
		"Pod %s was deleted and to end by %s, and node %s has not said that it has: whether the command still runs is not known until the node answers, or is deleted from the cluster",
		pod.Name, pod.DeletionTimestamp.UTC().Format(time.RFC3339), pod.Spec.NodeName)}
}

// stopping is what there is to say of a run that is past its deadline, until its command
// has ended.
func stopping(at *atv1alpha1.At, pod *corev1.Pod) news {
	return news{phase: atv1alpha1.Running, reason: reasonStopping, message: fmt.Sprintf(
		"%s and is being stopped: its command gets a signal, and is killed if it has not ended %d s later (terminationGracePeriodSeconds of its pod)",
		deadlineMessage(at), gracePeriod(pod)/time.Second)}
}

// notReported is added to the result of a command whose node has not reported its end.
func notReported(pod *corev1.Pod) string {
	if !started(pod) {
		return ""
	}
	return fmt.Sprintf("; node %q has not reported that the command has ended", pod.Spec.NodeName)
}

// waiting is what there is to say before an attempt is due.
func waiting(at *atv1alpha1.At, due time.Time) news {
	if at.Status.NextAttemptTime != nil || cannotPrepare(at) {
		return news{} // the failed or refused attempt has said it, or the process that could not be prepared
	}
	return news{phase: atv1alpha1.Pending, reason: reasonScheduled, message: runsAt(due) + ifCreatedAgain(at)}
}

// prepared is what there is to say when nothing is left but to remove the gate, or for the process to wait.
func prepared(at *atv1alpha1.At, pod *corev1.Pod, due time.Time) news {
	how := "its pod waits behind its scheduling gate"
	if _, isProcess := waitsUntil(pod); isProcess {
		how = "its process is being started, to wait for that"
		if started(pod) {
			how = fmt.Sprintf("its process waits for that on node %q", pod.Spec.NodeName)
		}
	}
	return news{phase: atv1alpha1.Pending, reason: reasonPrepared, message: runsAt(due) + ", and " + how + ifCreatedAgain(at)}
}

func runsAt(due time.Time) string { return "It runs at " + due.Format(time.RFC3339Nano) }

// ifCreatedAgain warns of a tool that creates an At again which was deleted because its time to live was over: with
// a starting deadline that is over by then, it does not run again. It has another UID then, and may be due later in
// its window.
func ifCreatedAgain(at *atv1alpha1.At) string {
	ttl, deadline := at.Spec.TTLSecondsAfterFinished, at.Spec.StartingDeadlineSeconds
	if ttl == nil {
		return ""
	}
	most := *ttl - int64(at.Spec.WindowSeconds)
	if deadline != nil && *deadline <= most {
		return ""
	}
	prevention := fmt.Sprintf("startingDeadlineSeconds of at most %d prevents that", most)
	if most < 1 {
		prevention = fmt.Sprintf("a ttlSecondsAfterFinished that is longer than windowSeconds (%d), with a startingDeadlineSeconds of at most the difference, prevents that",
			at.Spec.WindowSeconds)
	}
	return fmt.Sprintf(". It is deleted %d s after its end (ttlSecondsAfterFinished), and runs again if a tool then creates it again, from Git for example: %s", *ttl, prevention)
}

// missed is the result of a run that could not start by its deadline. How late it was by
// then, and whether runs usually start in so short a time here, says what a sensible
// deadline is.
func missed(at *atv1alpha1.At, seen observation, deadline time.Time, why string) news {
	within := seconds(*at.Spec.StartingDeadlineSeconds)
	message := fmt.Sprintf("It did not start by %s, which is startingDeadlineSeconds (%d s) after its time: %s. The operator found it so %s after its time",
		deadline.Format(time.RFC3339Nano), *at.Spec.StartingDeadlineSeconds, why, lateBy(seen.now.Sub(deadline)+within))
	if within < seen.usualLateness {
		message += fmt.Sprintf(". The deadline is shorter than the usual lateness of the latest runs, which is %s", lateBy(seen.usualLateness))
	}
	return news{phase: atv1alpha1.Missed, reason: reasonMissed, message: status.Shortened(message)}
}

// lateBy is a lateness in words: to the millisecond if it is less than a minute.
func lateBy(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// notReleased is why the gate of a claimed pod was not removed: it was refused, or
// there was no operator to do it.
func notReleased(at *atv1alpha1.At) string {
	if at.Status.Problem != "" {
		return at.Status.Problem
	}
	return "no operator was there to remove the scheduling gate of its pod"
}

// notStarted is why a pending At has not started. Without a problem, nobody looked
// at it in time.
func notStarted(at *atv1alpha1.At, deadline time.Time) string {
	switch {
	case at.Spec.Suspend:
		return "it was suspended"
	case at.Status.Problem != "":
		return at.Status.Problem
	case at.CreationTimestamp.After(deadline):
		return "the At was created later than that, at " + at.CreationTimestamp.UTC().Format(time.RFC3339)
	case at.Status.ObservedGeneration > 0 && at.Status.ObservedGeneration != at.Generation:
		return "the spec was changed later than that, or no operator was running"
	}
	return "no operator was running, or it was too busy"
}

// blocked is what there is to say while the pod of a deleted At of the same name
// is not gone.
func blocked(at *atv1alpha1.At, seen observation) news {
	return problemWith(at, create, &apply.ConflictError{Kind: "Pod", Name: seen.pod.Name, Predecessor: true})
}

func tooLong(at *atv1alpha1.At) news {
	return news{phase: atv1alpha1.Failed, reason: reasonDeadline, message: deadlineMessage(at)}
}

func deadlineMessage(at *atv1alpha1.At) string {
	return fmt.Sprintf("The run took longer than activeDeadlineSeconds (%d s)", *at.Spec.ActiveDeadlineSeconds)
}

// summarize is the status of an At after a step. failure is the error of the
// step's action, if it had one.
func summarize(at *atv1alpha1.At, seen observation, next step, failure error) atv1alpha1.AtStatus {
	st := *at.Status.DeepCopy()
	say := next.news
	switch {
	case next.action == reject:
		st.DiscardedPodUID, st.PreparedPodUID = next.pod.UID, ""
	case next.action == prepare:
		st.PreparedPodUID = next.pod.UID
	case next.action == createEarly && failure == nil:
		say = news{} // it is said when status has its UID
	case next.action == createEarly: // it is tried again when it is due: until then it costs nothing
	case next.action == createPlaceholder, next.action == removePlaceholder:
		if apply.IsRefusal(failure) && next.action == createPlaceholder {
			say = withoutPlaceholder("it cannot be created: " + failure.Error())
		}
	case failure != nil:
		say = problemWith(at, next.action, failure)
	}
	if say.phase == "" {
		if st.Phase.Finished() && st.ObservedGeneration > at.Generation {
			observedAgain(&st, at)
		}
		return st
	}

	st.Phase = say.phase
	st.Reason = say.reason
	st.ObservedGeneration = at.Generation
	switch due, err := scheduledTime(at); {
	case st.ScheduledTime != nil && (st.StartTime != nil || next.action == claim && isPrepared(at)):
		// It has begun, and a change that came too late does not move it.
	case err == nil:
		st.ScheduledTime = &metav1.MicroTime{Time: ceilMicro(due)}
	default:
		st.ScheduledTime = nil
	}
	if next.action == claim && failure == nil {
		claimed(&st, at, seen)
	}
	if say.result != nil {
		finished(&st, say.result)
	}
	if say.result != nil || say.reason != at.Status.Reason {
		allowed(&st, seen.pod)
	}
	if say.result != nil && !isClaimed(at) { // its nodes have refused it until its deadline
		st.Attempts++
		if st.StartTime == nil && at.Status.PendingSince != nil { // the first attempt began when its first pod was claimed
			st.StartTime = at.Status.PendingSince.DeepCopy()
			st.Lateness = late(st.StartTime.Sub(st.ScheduledTime.Time))
		}
	}
	if say.isRefused {
		takeBackClaim(&st, at, seen)
	}
	if say.result != nil || st.Phase.Finished() || st.Phase == atv1alpha1.Pending {
		st.PendingSince = nil
	}
	if st.Phase.Finished() {
		st.PreparedPodUID = ""
	}
	if st.Phase == atv1alpha1.Missed { // perhaps claimed, but its gate was not removed
		st.Attempts, st.PodName, st.PodUID, st.StartTime, st.Lateness = 0, "", "", nil, nil
	}
	st.NextAttemptTime = nil
	switch {
	case !say.nextAttempt.IsZero():
		st.NextAttemptTime = &metav1.Time{Time: say.nextAttempt}
	case st.Phase.Finished():
		if st.CompletionTime == nil {
			st.CompletionTime = &metav1.Time{Time: seen.now}
		}
	case next.action != claim && at.Status.NextAttemptTime != nil:
		st.NextAttemptTime = at.Status.NextAttemptTime // still backing off
	}
	st.Problem = ""
	if !st.Phase.Finished() && slices.Contains([]string{reasonRefused, reasonConflict, reasonInvalid, reasonNodeRefused, reasonNotPrepared}, say.reason) {
		st.Problem = say.message
	}
	setConditions(&st, at, say)
	return st
}

// observedAgain is for an At that was restored with its status, and counts its generations anew: tools take it for one
// that is not seen yet otherwise.
func observedAgain(st *atv1alpha1.AtStatus, at *atv1alpha1.At) {
	st.ObservedGeneration = at.Generation
	for i := range st.Conditions {
		st.Conditions[i].ObservedGeneration = at.Generation
	}
}

// claimed writes an attempt into status: from now on only its pod's gate may be removed, or
// it was, if the pod was prepared.
func claimed(st *atv1alpha1.AtStatus, at *atv1alpha1.At, seen observation) {
	st.Attempts = at.Status.Attempts + 1
	st.PodName = seen.pod.Name
	st.PodUID = seen.pod.UID
	st.PreparedPodUID = ""
	st.CompletionTime, st.ExitCode, st.Output = nil, nil, ""
	if st.StartTime == nil {
		st.StartTime = &metav1.MicroTime{Time: ceilMicro(seen.now.UTC())}
		if allowed := allowedAt(seen.pod); isPrepared(at) && !allowed.IsZero() {
			st.StartTime.Time = allowed
			if allowed.Before(st.ScheduledTime.Time) { // the clock was set back after it had shown that it was due
				st.StartTime.Time = st.ScheduledTime.Time
			}
		}
		st.Lateness = late(st.StartTime.Sub(st.ScheduledTime.Time))
	}
}

// takeBackClaim writes into status that an attempt was none: its pod is never claimed again,
// and another one is made under its name.
func takeBackClaim(st *atv1alpha1.AtStatus, at *atv1alpha1.At, seen observation) {
	st.PendingSince = &metav1.MicroTime{Time: ceilMicro(pendingSince(at, seen.pod).UTC())}
	st.Attempts--
	st.DiscardedPodUID = st.PodUID
	st.PodName, st.PodUID = "", ""
	if st.Attempts == 0 {
		st.StartTime, st.Lateness = nil, nil
	}
}

// allowed corrects when the first attempt was allowed to run, from when it was
// claimed to when its gate was removed, or its process was there. To say it at once would take a write more
// for every run.
func allowed(st *atv1alpha1.AtStatus, pod *corev1.Pod) {
	if st.Attempts != 1 || st.StartTime == nil || !hasUID(pod, st.PodUID) {
		return
	}
	if allowed := allowedAt(pod); allowed.After(st.StartTime.Time) {
		st.StartTime = &metav1.MicroTime{Time: allowed}
		st.Lateness = late(allowed.Sub(st.ScheduledTime.Time))
	}
}

// late is a lateness as it is read: what is more than a minute is in seconds.
func late(by time.Duration) *metav1.Duration {
	if by > time.Minute {
		by = by.Round(time.Second)
	}
	return &metav1.Duration{Duration: max(0, by)}
}

// finished writes the result of an attempt into status.
func finished(st *atv1alpha1.AtStatus, r *result) {
	st.CompletionTime = &metav1.Time{Time: r.finished}
	st.ExitCode = r.exitCode
	st.Output = strings.ToValidUTF8(r.output, "�")
}

func setConditions(st *atv1alpha1.AtStatus, at *atv1alpha1.At, say news) {
	conditions := status.Conditions{List: &st.Conditions, Generation: at.Generation}
	message := say.message
	switch {
	case st.Phase.Finished() && st.Attempts > 0 && at.Spec.BackoffLimit > 0:
		message += fmt.Sprintf(". This was attempt %d of %d", st.Attempts, at.Spec.BackoffLimit+1)
		if st.Phase == atv1alpha1.Failed && st.Attempts <= at.Spec.BackoffLimit {
			message += "; no other follows"
		}
	case !say.nextAttempt.IsZero():
		message += fmt.Sprintf(". Attempt %d of %d follows at %s", st.Attempts+1, at.Spec.BackoffLimit+1, say.nextAttempt.UTC().Format(time.RFC3339))
	}
	if st.Phase.Finished() {
		conditions.Set(atv1alpha1.ConditionComplete, st.Phase == atv1alpha1.Done, say.reason, message)
		conditions.Set(atv1alpha1.ConditionFailed, st.Phase != atv1alpha1.Done, say.reason, message)
	}
	switch {
	case st.Phase == atv1alpha1.Done, say.reason == reasonScheduled, say.reason == reasonPrepared, say.reason == reasonSuspended:
		conditions.MarkReady(say.reason, message)
	case st.Phase.Finished(), say.reason == reasonInvalid:
		conditions.MarkStalled(say.reason, message)
	default:
		conditions.MarkReconciling(say.reason, message)
	}
}

// problemWith is what there is to say when an action failed: the user reads what
// a user can do something about, and what lasts.
func problemWith(at *atv1alpha1.At, failed action, failure error) news {
	var conflict *apply.ConflictError
	var write *loop.WriteError
	if errors.As(failure, &write) {
		failure = write.Err
	}
	switch {
	case errors.As(failure, &conflict):
		return news{phase: phaseSoFar(at), reason: reasonConflict, message: conflict.Error()}
	case apply.IsRefusal(failure) && failed == create:
		return news{phase: phaseSoFar(at), reason: reasonRefused, message: status.Shortened("The pod cannot be created: " + failure.Error())}
	case apply.IsRefusal(failure) && failed == withdraw && isPrepared(at):
		return news{phase: phaseSoFar(at), reason: reasonRefused, message: status.Shortened("The pod waits for its time and is not to run any more, but cannot be withdrawn: " + failure.Error())}
	case apply.IsRefusal(failure) && failed == withdraw:
		return news{phase: phaseSoFar(at), reason: reasonRefused, message: status.Shortened("The pod waits behind its scheduling gate and is too late to run, but cannot be withdrawn: " + failure.Error())}
	case apply.IsRefusal(failure) && failed == release:
		return news{phase: phaseSoFar(at), reason: reasonRefused, message: status.Shortened("The scheduling gate of the pod cannot be removed: "+failure.Error()) + apply.WhatToDo(failure)}
	}
	return news{}
}

func phaseSoFar(at *atv1alpha1.At) atv1alpha1.Phase {
	if at.Status.Phase == "" {
		return atv1alpha1.Pending
	}
	return at.Status.Phase
}

// camelCase makes a reason from elsewhere fit for a condition.
func camelCase(reason string) string {
	reason = strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return -1
	}, reason)
	if reason == "" || !unicode.IsLetter(rune(reason[0])) {
		return reasonPodFailed
	}
	return words.Capitalized(reason)
}

// ceilMicro rounds up to what a MicroTime can show. Instants are rounded up and
// never down, so that what status shows is not before what happened.
func ceilMicro(t time.Time) time.Time {
	return t.Add(time.Microsecond - 1).Truncate(time.Microsecond)
}
