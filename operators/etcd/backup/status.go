package backup

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/status"
)

// summarize is the status of an EtcdBackup after a step. failure is what went wrong with the step's
// writes, if something did.
func summarize(b *v1beta2.EtcdBackup, seen observation, next *plan, failure error) v1beta2.BackupStatus {
	st := next.status
	st.ObservedGeneration = b.Generation
	st.NextTime = nil
	if next.next.step != "" && next.next.due.After(seen.now) {
		st.NextTime = new(metav1.NewTime(next.next.due))
	}
	after := b.DeepCopy()
	after.Status = st
	conditions := status.Conditions{List: &st.Conditions, Generation: b.Generation}
	if p := firstProblem(after, next, failure); p != nil {
		conditions.MarkProblem(p)
	} else {
		conditions.MarkReady(ready(after))
	}
	return st
}

// firstProblem goes through what may keep an EtcdBackup from being Ready, the worst first. The list is
// the specification of that condition.
func firstProblem(b *v1beta2.EtcdBackup, next *plan, failure error) *status.Problem {
	return status.First(
		func() *status.Problem { return apply.Problem(failure, "EtcdBackup") },
		func() *status.Problem { return paused(b) },
		func() *status.Problem { return waits(next) },
		func() *status.Problem { return failed(b) },
		func() *status.Problem { return unfinished(b, next) },
	)
}

func paused(b *v1beta2.EtcdBackup) *status.Problem {
	if !b.Spec.Paused {
		return nil
	}
	return &status.Problem{Reason: reasonPaused, Message: "spec.paused is true: no backup is begun, and none is removed"}
}

// waits is what keeps a step from being begun, or its pod from starting. That a pod is still ending is
// worth a word only where nothing else can be reported.
func waits(next *plan) *status.Problem {
	isEnding := next.problem != nil && next.problem.Reason == reasonPodEnding
	if isEnding && (next.status.LastBackup != nil || next.status.LastFailure != nil) {
		return nil
	}
	return next.problem
}

// failed is the last try that failed, until a later one was done.
func failed(b *v1beta2.EtcdBackup) *status.Problem {
	f := b.Status.LastFailure
	if f == nil {
		return nil
	}
	message := unended(f.Message)
	switch {
	case b.Status.Running != nil:
		message += ". It is being tried again"
	case b.Status.NextTime != nil:
		message += ". It is tried again at " + inWords(b.Status.NextTime.Time)
	}
	return &status.Problem{Reason: f.Reason, Message: message, Retriable: f.Retriable}
}

// unfinished is about a backup that does not count yet. A periodic EtcdBackup that has one remains
// Ready while the next is made.
func unfinished(b *v1beta2.EtcdBackup, next *plan) *status.Problem {
	if b.Status.Succeeded && (isPeriodic(b) || !owesProof(b)) {
		return nil
	}
	step := next.next.step
	if b.Status.Running != nil {
		step = b.Status.Running.Step
	}
	switch {
	case step == v1beta2.BackupProve && b.Status.LastBackup != nil:
		return &status.Problem{Reason: reasonProving, Retriable: true, Message: fmt.Sprintf("Proving the backup %s by restoring it", b.Status.LastBackup.Key)}
	case step == v1beta2.BackupPrune:
		return &status.Problem{Reason: reasonPruning, Retriable: true, Message: "Removing the backups that are not kept"}
	case b.Status.NextTime != nil:
		return &status.Problem{Reason: reasonWaiting, Retriable: true, Message: "The first backup is due at " + inWords(b.Status.NextTime.Time)}
	}
	return &status.Problem{Reason: reasonSaving, Retriable: true, Message: "The backup is being made"}
}

// ready says which backup there is.
func ready(b *v1beta2.EtcdBackup) (reason, message string) {
	last := b.Status.LastBackup
	message = fmt.Sprintf("Backup %s has revision %d", last.Key, last.Revision)
	if isProved(b) && !owesProof(b) {
		message += ", and was proved"
	}
	if !isPeriodic(b) {
		return reasonComplete, message
	}
	if at := b.Status.NextTime; at != nil {
		message += "; the next is due at " + inWords(at.Time)
	}
	return reasonScheduled, message
}

func inWords(t time.Time) string { return t.UTC().Format(time.RFC3339) }
