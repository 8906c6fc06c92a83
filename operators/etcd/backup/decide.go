package backup

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/task"
)

const (
	// shownAfter is how old a pod is when status says what keeps it from starting: most reasons pass
	// by themselves sooner.
	shownAfter = 10 * time.Second
	// lostAfter is how long a deleted pod may take to end, besides its grace period, until it counts as
	// one of a node that is lost.
	lostAfter = time.Minute
	// strippedPoll is how often a pod is looked at whose marks cannot be restored: it may have no events.
	strippedPoll = 10 * time.Second
	// absentPoll is how often a Secret is looked for, in the cache, that no event of which is awaited.
	absentPoll = time.Minute
)

// plan is what to do now, and what status is after it.
type plan struct {
	loop.Plan
	// status is what is remembered; the conditions are not in it.
	status v1beta2.BackupStatus
	// next is the step that comes next, if none is under way.
	next turn
	// problem is what keeps a step from being begun, or its pod from starting.
	problem *status.Problem
}

// decider decides with the agent's image.
type decider struct{ image string }

// decide is the next step. It is pure.
func (d *decider) decide(b *v1beta2.EtcdBackup, seen observation) (*plan, error) {
	next := &plan{status: *b.Status.DeepCopy()}
	if b.Status.Running != nil {
		next.follow(b, seen)
	} else {
		next.begin(b, seen, d.image)
	}
	return next, nil
}

// follow takes a claimed try to its result.
func (p *plan) follow(b *v1beta2.EtcdBackup, seen observation) {
	try, pod := b.Status.Running, seen.claimed
	isOutdated := try.Generation != b.Generation
	switch {
	case pod == nil && isOutdated:
		p.end(b, seen) // what keeps it from starting may be what was changed: it is no failure
		return
	case pod == nil:
		p.fail(b, seen, gone(try))
		return
	}
	if seen.stripped {
		p.restoreMarks(b, pod)
		p.Wake(seen.now.Add(strippedPoll))
	}
	said := job.Read(pod)
	switch {
	case said.State == job.Ended && said.Problem != nil:
		p.fail(b, seen, *said.Problem)
	case said.State == job.Ended:
		p.succeed(b, seen, said.Result)
	case isLost(pod, seen.now):
		p.fail(b, seen, lost(try))
	case pod.DeletionTimestamp != nil:
		p.awaitEnd(pod)
	case said.State == job.Waiting && isOutdated:
		// The claim ends when it is gone: until then it may start.
		p.delete(pod)
	case pods.IsGated(pod, gate):
		p.removeGate(pod)
	case said.Problem != nil:
		shown := pod.CreationTimestamp.Add(shownAfter)
		if seen.now.Before(shown) {
			p.Wake(shown)
			return
		}
		p.problem = (*status.Problem)(said.Problem)
	default:
		words, until := pods.Unprepared(pod, nil, seen.now)
		if words != "" {
			p.problem = &status.Problem{Reason: job.ReasonCannotStart, Message: fmt.Sprintf("Pod %q: %s", pod.Name, words), Retriable: true}
		} else if !until.IsZero() {
			p.Wake(until)
		}
	}
}

// begin takes the next step up to its claim. Until then everything can still change.
func (p *plan) begin(b *v1beta2.EtcdBackup, seen observation, image string) {
	place, ok := p.choose(b, seen)
	name := ""
	if ok && p.next.isDue(seen.now) {
		name = podName(b, b.Status.Tries+1, p.next.step)
	}
	var made *corev1.Pod
	for _, pod := range seen.pods {
		switch {
		case pod.DeletionTimestamp != nil && isLost(pod, seen.now):
		case pod.DeletionTimestamp != nil:
			p.awaitEnd(pod)
			name = ""
		case pod.Name == name && pods.IsGated(pod, gate) && pod.Annotations[annotation.Generation] == strconv.FormatInt(b.Generation, 10):
			made = pod
		default:
			p.delete(pod)
			name = ""
		}
	}
	switch {
	case name == "":
	case made == nil:
		p.Do(loop.Create{Object: pod(b, seen, b.Status.Tries+1, p.next.step, place, image), IfCurrent: true})
	default:
		p.claim(b, seen, made)
	}
}

// choose finds the next step, and what keeps it from being begun.
func (p *plan) choose(b *v1beta2.EtcdBackup, seen observation) (place task.Place, ok bool) {
	if b.Spec.Paused {
		return place, false
	}
	next, err := nextTurn(b, seen)
	if err != nil {
		p.problem = &status.Problem{Reason: reasonInvalidSchedule, Message: err.Error()}
		return place, false
	}
	p.next = next
	if !next.isDue(seen.now) {
		if next.step != "" {
			p.Wake(next.due)
		}
		return place, false
	}
	if place, err = task.PlaceOf(b.Spec.StorageType, b.Spec.BackupSource); err != nil {
		p.problem = invalidPlace(err)
		return place, false
	}
	if p.problem = absent(b, seen, next.step); p.problem == nil && next.step == v1beta2.BackupSave {
		p.problem = unready(b, seen)
	}
	if p.problem != nil {
		p.Wake(seen.now.Add(absentPoll))
	}
	return place, p.problem == nil
}

func invalidPlace(err error) *status.Problem {
	var what *task.Problem
	if errors.As(err, &what) {
		return &status.Problem{Reason: what.Reason, Message: what.Message}
	}
	return &status.Problem{Reason: task.ReasonPlaceInvalid, Message: err.Error()}
}

// claim has status name the pod. Nothing else is done.
func (p *plan) claim(b *v1beta2.EtcdBackup, seen observation, pod *corev1.Pod) {
	p.status.Tries++
	p.status.Running = &v1beta2.BackupTry{
		Step: p.next.step, Number: p.status.Tries, Generation: b.Generation,
		Pod: pod.Name, PodUID: pod.UID, SecretsHash: seen.secrets, StartTime: inSeconds(seen.now),
	}
	p.Claim = "claim"
}

// removeGate lets the very pod run.
func (p *plan) removeGate(pod *corev1.Pod) {
	p.Do(loop.Patch{Object: pod, Part: "gate", Spec: pods.Ungated(gate), IfCurrent: true})
}

// restoreMarks gives a pod back by what it is found, and deleted with its EtcdBackup.
func (p *plan) restoreMarks(b *v1beta2.EtcdBackup, pod *corev1.Pod) {
	p.Do(loop.Patch{Object: pod, Part: "marks", Why: "the pod had lost its labels or its owner", IfCurrent: true, Metadata: map[string]any{
		"labels":          map[string]any{apply.ManagedByLabel: managedBy, apply.InstanceLabel: names.LabelValue(b.Name)},
		"ownerReferences": []any{ownerOf(b)},
	}})
}

// delete deletes a pod as it was seen: one that has done something since may have a result.
func (p *plan) delete(pod *corev1.Pod) {
	why := "it is over"
	if pods.IsGated(pod, gate) || job.Read(pod).State == job.Waiting {
		why = "the spec was changed before it started"
	}
	p.Do(loop.Delete{Object: pod, Why: why, IfCurrent: true, IfSame: true})
}

// awaitEnd waits for a deleted pod. Its end is an event.
func (p *plan) awaitEnd(pod *corev1.Pod) {
	p.Wake(lostAt(pod))
	if p.problem != nil {
		return
	}
	p.problem = &status.Problem{Reason: reasonPodEnding, Message: fmt.Sprintf("Waiting for pod %q to end", pod.Name), Retriable: true}
}

// succeed stores the result of a try.
func (p *plan) succeed(b *v1beta2.EtcdBackup, seen observation, r *task.Result) {
	st, try := &p.status, b.Status.Running
	switch {
	case try.Step == v1beta2.BackupSave && r.Saved != nil:
		saved := r.Saved.DeepCopy()
		saved.Number, saved.Problem = try.Number, ""
		st.LastBackup, st.LastTryTime = saved, new(try.StartTime)
		st.EtcdVersion, st.EtcdRevision = saved.EtcdVersion, saved.Revision
		if !isProved(b) {
			verified(st, seen.now)
		}
	case try.Step == v1beta2.BackupProve && r.Proved != nil && st.LastBackup != nil:
		st.LastProof = r.Proved.DeepCopy()
		st.LastProof.Number = st.LastBackup.Number
		verified(st, seen.now)
	case try.Step == v1beta2.BackupPrune && st.LastBackup != nil:
		st.PrunedAfter, st.StoredBackups = st.LastBackup.Number, new(int32(r.Left))
		st.RetainedBackups = int32(r.Retained)
		st.Failures = 0
	default:
		p.fail(b, seen, speechless(try))
		return
	}
	st.LastFailure = nil
	p.end(b, seen)
}

// verified is of a backup that counts.
func verified(st *v1beta2.BackupStatus, now time.Time) {
	st.Succeeded, st.Reason, st.Failures, st.LastSuccessDate = true, "", 0, new(inSeconds(now))
}

// fail stores why a try failed. What was known before of backups stays.
func (p *plan) fail(b *v1beta2.EtcdBackup, seen observation, why task.Problem) {
	st, try := &p.status, b.Status.Running
	why.Message = status.Shortened(why.Message)
	st.Failures++
	st.LastFailure = &v1beta2.BackupFailure{
		Step: try.Step, Generation: try.Generation, SecretsHash: try.SecretsHash, Time: inSeconds(seen.now),
		Reason: why.Reason, Message: why.Message, Retriable: why.Retriable,
	}
	if try.Step != v1beta2.BackupPrune {
		st.Succeeded, st.Reason = false, why.Reason
	}
	switch {
	case try.Step == v1beta2.BackupSave:
		st.LastTryTime = new(try.StartTime)
	case try.Step == v1beta2.BackupProve && refutes(why.Reason) && st.LastBackup != nil:
		st.LastBackup.Problem = why.Message
	}
	p.end(b, seen)
}

// end ends the claim. What comes next is in the same status.
func (p *plan) end(b *v1beta2.EtcdBackup, seen observation) {
	p.status.Running, p.Claim = nil, "result"
	if b.Spec.Paused {
		return
	}
	after := b.DeepCopy()
	after.Status = p.status
	p.next, _ = nextTurn(after, seen) // what is wrong with the schedule is reported when it is its turn
}

// lostAt is when a deleted pod counts as lost: its DeletionTimestamp is when its grace period is over.
func lostAt(pod *corev1.Pod) time.Time { return pod.DeletionTimestamp.Add(lostAfter) }

func isLost(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && !now.Before(lostAt(pod))
}

// inSeconds is a time as status has it.
func inSeconds(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
