package restoring

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/kit/words"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/task"
	"example.com/fairlead/operators/etcd/view"
)

// This file restores a backup. The cluster is replaced by one that begins with a new member, the
// seed, whose data is made of the backup. The seed is a cluster of its own from the beginning, with
// an ID of its own, and has none of the labels of members: no Service leads to it, and no member of
// the cluster before can join it, or it them. What is remembered is in status.restoring, and each
// phase is claimed there before anything is done in it:
//
//	nothing      an EtcdRestore is of the cluster (package restore says of which one it is), or a loss
//	             of quorum is answered with spec.recoverFrom
//	Verifying    The seed is named. Its pod is created with a scheduling gate, what has its data is
//	             recorded, and the gate is removed. It fetches the backup, which is checked, and serves
//	             it, to nobody but the operator, with revisions far above those of the cluster: who watches
//	             that learns from the seed that it has to list again, and is not silent until its
//	             revisions have grown as far. Meanwhile the cluster is kept as always.
//	Switching    The members of the cluster are stopped in their pods, each with the seed's name on
//	             it. When all have stopped, and the seed still serves, the switch is claimed: the
//	             cluster is the seed's, and has no other member. From here there is no way back.
//	Completing   The replaced pods are deleted. Once none of them can run, the seed gets the labels of
//	             a member, and Services lead to it. Members are added as to any cluster that has too
//	             few. The replaced volumes are kept until it is complete.
//	nothing      status.restored says what became of it. The replaced volumes are deleted, or
//	             are out of the operator's sight (kept.go).
//
// # What goes wrong
//
//   - The backup cannot be fetched, and that may pass: the kubelet repeats it. If it cannot pass,
//     or etcd does not start with what was fetched, the restore has failed: the seed is deleted, and
//     nothing else was done.
//   - The seed's data is lost in Verifying or Switching: Verifying is claimed with another seed.
//     Members that were stopped have another seed's name on them, or are needed: they are started as any
//     that was stopped by somebody who is gone (package membership).
//   - The seed does not answer in Switching, or a member does not stop, for as long as [SwitchPatience]:
//     the same.
//   - The EtcdRestore is deleted in Verifying: the seed is deleted.
//   - The data of the restored cluster is lost in Completing: that is a loss of quorum as any. The
//     restore ends as one that has failed, and the replaced volumes are kept.
//
// # If the operator dies
//
// After a claim: the next one does what the phase says. What of it is done already is seen: the seed's pod,
// by its name and the UID of its data; members that are stopped, by the seed's name on them; pods and
// volumes that are deleted. Before a claim nothing that depends on it was done. After the deletion of a
// seed that has failed, or was replaced: seeds that status does not name are deleted whenever
// they are seen. An operator that does not know of a claim yet writes nothing that matters: its
// writes are made only if it has the present version of the EtcdCluster; and what starts a member
// that was stopped, only if the pod is as it was seen.

// SwitchPatience is for how long the cluster may be without members that serve until it is given up to
// switch for now. It takes some seconds.
const SwitchPatience = 2 * time.Minute

// RestoreBackup takes a restore one step on. It is the last step unless the cluster is to be kept as always.
func RestoreBackup(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	s.Do(removeSeeds(ec, v)...)
	if ec.Status.Restoring == nil {
		s.IsLast = beginRestore(ec, v, &s)
	} else {
		r := s.Remember(ec).Restoring
		switch r.Phase {
		case v1beta2.RestoreVerifying:
			s.IsLast = verify(ec, v, &s, r)
		case v1beta2.RestoreSwitching:
			r.Problem = "" // what was refused may not be now
			switchOver(ec, v, &s, r)
			s.IsLast = true
		default:
			r.Problem = ""
			s.IsLast = completeRestore(ec, v, &s, r)
		}
	}
	if s.After != nil {
		s.UnderWay = RestoreUnderWay(s.After.Restoring)
	}
	return s
}

// beginRestore claims the restore that is next, if there is one.
func beginRestore(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step) bool {
	next := v.Restore
	if next == nil {
		return awaitRestore(ec, v, s)
	}
	if loss := ec.Status.QuorumLoss; loss != nil && loss.From != "" {
		return false // first what is under way
	}
	Begin(ec, v, s, v1beta2.Restoring{ID: string(next.UID), Name: next.Name, Source: next.Spec.RestoreSource, KeepOld: next.Spec.KeepOld})
	return true
}

// Begin claims a restore, with its seed.
func Begin(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, r v1beta2.Restoring) {
	r.StartTime = step.TimeOf(v.Now)
	nameSeed(ec, v, s, &r, "")
}

// nameSeed claims another seed: the first, or one in place of that which was lost.
func nameSeed(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, r *v1beta2.Restoring, why string) {
	names, used := step.NewNames(ec, v, 1)
	s.Remember(ec).MemberNamesUsed = used
	s.Remember(ec).Restoring = &v1beta2.Restoring{
		ID: r.ID, Name: r.Name, Source: r.Source, KeepOld: r.KeepOld, StartTime: r.StartTime,
		Phase: v1beta2.RestoreVerifying, Seed: names[0], Problem: why,
	}
	s.Claim = "seed"
	s.Soon()
}

// awaitRestore keeps a cluster from beginning empty whose EtcdRestore has failed, or has yet to say that it is of this one:
// both may have been created together, and then its own loop writes that in a moment.
func awaitRestore(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step) bool {
	done := ec.Status.Restored
	switch isNew := ec.Status.ClusterID == "" && len(ec.Status.Founders) == 0; {
	case isNew && v.Undecided != nil:
		s.Report(reason.Restoring, "Waiting for EtcdRestore %q, with which the cluster is to begin, to have the UID of this EtcdCluster in its status", v.Undecided.Name)
		return true
	case !isNew || done == nil || done.FailureMessage == "" || !v.HasRestore(done.ID):
		return false
	}
	s.Stall(reason.RestoreFailed, "EtcdRestore %q, with which the cluster is to begin, has failed: %s. Create another EtcdRestore, or delete this one to begin with an empty cluster", done.Name, done.FailureMessage)
	return true
}

// verify has the seed fetch the backup and serve it.
func verify(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, r *v1beta2.Restoring) bool {
	isNew := ec.Status.ClusterID == "" && len(ec.Status.Founders) == 0
	switch {
	case r.Name != "" && !v.HasRestore(r.ID):
		over(ec, s, restoredOf(v, r, "Cancelled: the EtcdRestore was deleted"))
		return true
	case r.Name == "" && !answersLoss(ec, r): // not wanted any more
		over(ec, s, ec.Status.Restored)
		return true
	}
	s.Later() // of the pod there are events
	switch said := readSeed(v.Seed); {
	case said.isLost:
		nameSeed(ec, v, s, r, "the seed was lost")
	case said.failed != "" && r.Name != "":
		over(ec, s, restoredOf(v, r, said.failed))
	case said.failed != "":
		r.Problem = said.failed // another spec.recoverFrom ends it
	case !said.serves:
		r.Problem = said.problem
		createSeed(ec, v, s, r)
		if said.fetched != nil {
			s.Soon()
		}
	default:
		if isOvertaken(v, said.fetched) {
			nameSeed(ec, v, s, r, "the revisions of the cluster have come near to those that the seed begins with")
			break
		}
		r.Key, r.Revision, r.RevisionOffset, r.ClusterID = said.fetched.Key, said.fetched.Revision, said.fetched.Offset, said.fetched.ClusterID
		s.Soon()
		if r.Problem = keepsFromSwitch(ec, v); r.Problem == "" {
			startSwitch(v, s, r)
		}
	}
	return s.Claim != "" || isNew
}

// over ends a restore, and remembers what became of it. Its seed, if it is no member, is deleted as one that status
// does not name.
func over(ec *v1beta2.EtcdCluster, s *step.Step, what *v1beta2.Restored) {
	s.Remember(ec).Restoring, s.Remember(ec).Restored = nil, what
	s.Claim = "restored"
	s.Soon()
}

// answersLoss says whether a restore is what the present loss of quorum is answered with.
func answersLoss(ec *v1beta2.EtcdCluster, r *v1beta2.Restoring) bool {
	loss := ec.Status.QuorumLoss
	return loss != nil && loss.ID == r.ID && ec.Spec.AcceptDataLoss == r.ID && ec.Spec.RecoverFrom != nil &&
		sameSource(*ec.Spec.RecoverFrom, r.Source)
}

// restoredOf is what status says of a restore that came to its end.
func restoredOf(v *view.View, r *v1beta2.Restoring, failure string) *v1beta2.Restored {
	return &v1beta2.Restored{
		ID: r.ID, Name: r.Name, FailureMessage: failure, Key: r.Key, Revision: r.Revision, RevisionOffset: r.RevisionOffset, LostRevision: r.LostRevision, ClusterID: r.ClusterID,
		Time: step.TimeOf(v.Now),
	}
}

// keepsFromSwitch is what the switch has to wait for; empty if for nothing. A member of which nobody
// knows whether it runs could not be known to have stopped.
func keepsFromSwitch(ec *v1beta2.EtcdCluster, v *view.View) string {
	switch loss := ec.Status.QuorumLoss; {
	case loss != nil && loss.From != "":
		return "waiting for the cluster to be started again from member " + loss.From
	case ec.Status.ClusterID == "" && len(ec.Status.Founders) > 0 && loss == nil:
		return "waiting for the cluster to be created"
	}
	for _, m := range v.Present {
		switch pod := m.Pod; {
		case pod == nil:
		case objects.IsEnding(pod):
			return fmt.Sprintf("waiting for pod %s to end", m.PodName)
		case pods.IsOver(pod) || objects.HasStopped(pod) || m.HasAnswered():
		default:
			return fmt.Sprintf("member %s does not answer, so that nobody could tell when it has stopped: if its node is lost, delete its pod", m.PodName)
		}
	}
	return ""
}

// startSwitch claims the switch. All that is needed later about the cluster before is recorded.
func startSwitch(v *view.View, s *step.Step, r *v1beta2.Restoring) {
	r.Phase, r.SwitchTime, r.LostRevision = v1beta2.RestoreSwitching, step.TimeOf(v.Now), lastRevision(v)
	s.Claim = "switching"
}

// lastRevision is the last revision that is known of the cluster.
func lastRevision(v *view.View) int64 {
	last := v.Revision
	for _, m := range v.Named {
		last = max(last, m.Was.Revision)
	}
	return last
}

// isOvertaken says whether the cluster, which goes on until the switch, has used up so many revisions that it could give out
// those that the seed begins with. An agent of an earlier version leaves them as they are in the backup.
func isOvertaken(v *view.View, seed *task.Fetched) bool {
	return seed.Offset > 0 && lastRevision(v)+task.RevisionsAhead/2 > seed.Revision+seed.Offset
}

// switchOver stops the members of the cluster, and claims that the cluster is the seed's.
func switchOver(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, r *v1beta2.Restoring) {
	s.Soon()
	said := readSeed(v.Seed)
	isLate := !v.Now.Before(r.SwitchTime.Add(SwitchPatience))
	if said.isLost || said.failed != "" || isLate {
		why := "the seed was lost"
		if isLate {
			why = "the members did not stop in time, or the seed did not answer"
		}
		nameSeed(ec, v, s, r, why)
		return
	}
	stopped := true
	for _, m := range v.Present {
		switch pod := m.Pod; {
		case pod == nil:
		case objects.IsEnding(pod):
			stopped = false
		case pods.IsOver(pod):
		case pod.Annotations[annotation.StoppedFor] != r.Seed || objects.ImageIn(pod) != objects.NoImage || !strings.HasSuffix(objects.ImageOfContainer(pod), objects.NoImage):
			stopped = false
			if said.serves {
				s.Do(objects.Stopping(pod, "stop", "stopped: the cluster is restored from a backup", map[string]any{annotation.StoppedFor: r.Seed}))
			}
		case !objects.HasStopped(pod) || pod.Spec.NodeName != "" && !objects.LacksImage(pod):
			stopped = false
		}
	}
	switch {
	case !said.serves:
		createSeed(ec, v, s, r)
	case stopped && said.fetched.ClusterID == r.ClusterID && said.fetched.Key == r.Key:
		switched(ec, v, s, r)
	}
}

// switched claims that the cluster is the seed's.
func switched(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, r *v1beta2.Restoring) {
	r.Phase, r.Problem, r.Replaced = v1beta2.RestoreCompleting, "", nil
	for _, m := range v.Present {
		r.Replaced = append(r.Replaced, m.PodName)
	}
	m := s.Remember(ec)
	m.ClusterID, m.Founders, m.MemberBeingAdded, m.MemberBeingUpdated, m.DataPreparedFor, m.VersionRefused, m.QuorumLoss = r.ClusterID, nil, "", "", "", nil, nil
	if r.Name == "" {
		m.Recovered = &v1beta2.Recovered{ID: r.ID, Member: r.Seed, Backup: r.Key, Revision: r.Revision, RevisionOffset: r.RevisionOffset, LostRevision: r.LostRevision, Time: step.TimeOf(v.Now)}
	}
	a := v.Seed.Answer
	s.Only = &v1beta2.MemberStatus{Name: r.Seed, ID: a.Status.ID.String(), DataUID: r.SeedDataUID, Version: a.Status.Version, Revision: a.Status.Revision}
	s.Claim = "switched"
}

// completeRestore waits until the restored cluster is as its spec requests, while it is kept as always.
func completeRestore(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, r *v1beta2.Restoring) bool {
	loss := ec.Status.QuorumLoss
	isLost := loss != nil && !v.HasQuorum && (len(loss.Surviving) == 0 || loss.ID == ec.Spec.AcceptDataLoss && ec.Spec.RecoverFrom != nil)
	if !isLost && !isComplete(ec, v) {
		return false
	}
	done := restoredOf(v, r, "")
	if isLost || r.KeepOld {
		if writes := setAside(v, r); len(writes) > 0 {
			s.Do(writes...)
			if isLost {
				s.Soon()
			}
			return isLost // before anything begins that takes them for what is left of a failed try
		}
		done.KeptPersistentVolumeClaims = v.Kept
	}
	if isLost {
		done.FailureMessage = "QuorumLost: the restored cluster has lost its data before it was complete. The volumes of the members before are kept"
	}
	over(ec, s, done)
	return true
}

// isComplete says whether a restored cluster is as its spec requests. What status says counts as well: by that, nothing
// that is replaced is overlooked (observereplaced.go of package cluster).
func isComplete(ec *v1beta2.EtcdCluster, v *view.View) bool {
	return ec.Status.ReadyMembers >= ec.Spec.Size && v.IsWhole() && v.IsReached() && v.IsCurrent && ec.Status.MemberBeingAdded == "" &&
		!slices.ContainsFunc(v.Strays, (*view.Member).HasPod) && v.Ours() >= int(ec.Spec.Size)
}

// RestoreUnderWay reports the restore that is under way; nil if none is.
func RestoreUnderWay(r *v1beta2.Restoring) *status.Problem {
	if r == nil {
		return nil
	}
	message := map[v1beta2.RestorePhase]string{
		v1beta2.RestoreVerifying:  "reading and checking the backup, while the cluster goes on as it is",
		v1beta2.RestoreSwitching:  "switching to member " + r.Seed + ", which serves the backup",
		v1beta2.RestoreCompleting: "adding members to " + r.Seed + ", which serves the backup",
	}[r.Phase]
	if r.Problem != "" {
		message += "; " + r.Problem
	}
	return &status.Problem{Reason: reason.Restoring, Retriable: true, Message: fmt.Sprintf("%s is under way: %s", words.Capitalized(Called(r)), message)}
}

// Called is what status calls a restore.
func Called(r *v1beta2.Restoring) string {
	if r.Name == "" {
		return "the answer to the loss of quorum"
	}
	return "EtcdRestore " + strconv.Quote(r.Name)
}
