package membership

import (
	"fmt"
	"slices"
	"strings"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/restoring"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// This file is about the loss of quorum: so many members have lost their data that the others
// cannot go on. It is reported, with what survives. What happens then is the user's decision,
// because writes that were acknowledged may be lost by it. On the user's word the cluster is
// started again from the most advanced survivor:
//
//	the survivor is named in status
//	the pods of the others are deleted     their volumes stay, until there is a quorum again
//	the survivor starts alone              with ETCD_FORCE_NEW_CLUSTER, which is an annotation
//	                                       of its pod, so that it does not need another pod
//	it leads a cluster of one              the annotation is removed, status says from which
//	                                       revision it started
//	members are added                      as in any cluster that has too few
//
// With spec.recoverFrom it is started again from a backup instead, see restoring.go.

// RecoverQuorum takes a cluster whose quorum is lost one step on.
func RecoverQuorum(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if loss := ec.Status.QuorumLoss; loss != nil && loss.From != "" {
		startFrom(ec, v, &s, loss)
		return s.Last()
	}
	if ec.Status.QuorumLoss != nil {
		s.Remember(ec).QuorumLoss = nil
	}
	if v.HasQuorum {
		return s
	}
	lost, surviving, voters := survivors(v)
	if len(lost) == 0 || voters-len(lost) >= objects.Majority(voters) {
		return s
	}
	loss := reportLoss(ec, &s, lost, surviving)
	s.Do(Restore(ec, v).Writes...) // what survives is needed, and may know more
	if ec.Spec.AcceptDataLoss != loss.ID {
		s.Later()
		return s.Last()
	}
	if recoverFrom(ec, v, &s, loss) {
		return s.Last()
	}
	s.Soon()
	s.Activity, s.Doing = v1beta2.ConditionRecovering, "starting again from what survives"
	if len(surviving) == 0 {
		startAnew(ec, v, &s, loss)
		return s.Last()
	}
	for _, m := range surviving {
		if !m.HasAnswered() {
			s.Report(reason.QuorumLost, "Waiting for member %s, which survives, to say how far it got. If it cannot, delete its pod and its volume: then it counts as lost", m.PodName)
			return s.Last()
		}
	}
	loss.Accepted, loss.From = true, surviving[0].PodName
	s.Claim = "survivor"
	return s.Last()
}

// survivors are the voters whose data is lost and those whose data is not, as far as the operator runs them, and the
// number of all.
func survivors(v *view.View) (lost []string, surviving []*view.Member, voters int) {
	for _, m := range v.Members {
		if !m.IsVoter() || !m.IsStarted() {
			continue
		}
		voters++
		if m.IsLost() {
			lost = append(lost, m.PodName)
		} else if !m.IsForeign() {
			surviving = append(surviving, m)
		}
	}
	return lost, surviving, voters
}

// recoverFrom answers the loss of quorum with a backup, if the user wants that: it is restored as
// by an EtcdRestore (package restoring).
func recoverFrom(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, loss *v1beta2.QuorumLoss) bool {
	if ec.Spec.RecoverFrom == nil {
		return false
	}
	if ec.Status.Restoring == nil {
		r := v1beta2.Restoring{ID: loss.ID, Source: *ec.Spec.RecoverFrom.DeepCopy(), KeepOld: true}
		restoring.Begin(ec, v, s, r)
		s.UnderWay = restoring.RestoreUnderWay(s.After.Restoring)
	}
	s.Later()
	return true
}

// reportLoss reports the loss of quorum, and returns what status has of it. Its ID is that of what is lost: if more
// is, it is another loss.
func reportLoss(ec *v1beta2.EtcdCluster, s *step.Step, lost []string, surviving []*view.Member) *v1beta2.QuorumLoss {
	slices.Sort(lost)
	slices.SortStableFunc(surviving, func(a, b *view.Member) int { return -compareProgress(a, b) })
	loss := &v1beta2.QuorumLoss{Lost: lost, ID: names.Hash(string(ec.UID) + "/" + strings.Join(lost, ","))}
	for _, m := range surviving {
		loss.Surviving = append(loss.Surviving, m.PodName)
	}
	s.Remember(ec).QuorumLoss = loss
	s.Activity, s.Doing = "", ""
	if len(surviving) == 0 {
		s.Stall(reason.QuorumLost, "The data of all members is lost: %s. To start an empty cluster, set spec.acceptDataLoss to %q; to start from a backup, set spec.recoverFrom as well", strings.Join(lost, ", "), loss.ID)
		return loss
	}
	s.Stall(reason.QuorumLost, "Quorum is lost: the data of %s is lost, %s survives. If more volumes can be brought back, do that. To start again from what survives, without the writes that only the lost members had, set spec.acceptDataLoss to %q; to start from a backup, set spec.recoverFrom as well",
		strings.Join(lost, ", "), strings.Join(loss.Surviving, ", "), loss.ID)
	return loss
}

// compareProgress compares how far two members got.
func compareProgress(a, b *view.Member) int {
	progress := func(m *view.Member) []uint64 {
		if !m.HasAnswered() {
			return nil
		}
		return []uint64{m.Answer.Status.RaftIndex, m.Answer.Status.Applied}
	}
	return slices.Compare(progress(a), progress(b))
}

// startFrom starts the cluster again from the survivor that was named.
func startFrom(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, loss *v1beta2.QuorumLoss) {
	s.Activity, s.Doing = v1beta2.ConditionRecovering, fmt.Sprintf("starting again from member %s", loss.From)
	s.Soon()
	m := v.Of(loss.From)
	message := fmt.Sprintf("Starting again from member %s, whose data survives", loss.From)
	if m.Pod != nil && !m.HasAnswered() {
		message += "; " + m.Problem.Words
	}
	s.Report(reason.Recovering, "%s", message)
	others := false
	for _, other := range v.Present {
		if other == m || other.Pod == nil {
			continue
		}
		others = true
		if !objects.IsEnding(other.Pod) {
			s.Do(step.Removed(other.Pod, "the cluster starts again from member "+loss.From))
		}
	}
	switch {
	case m.Data == "":
		s.Remember(ec).QuorumLoss = nil // it is lost as well: what is left is looked at anew
	case m.Pod == nil:
		s.Do(step.Created(ec, v, m, v.VersionFor(ec, m), objects.Start{Force: true, Token: string(ec.UID), IsSealed: true})...)
	case others || objects.IsEnding(m.Pod):
		// they must not vote
	case m.LeadsAlone():
		recovered(ec, v, s, m, loss)
	case m.Pod.Annotations[annotation.ForceNewCluster] != "true":
		s.Do(objects.Stopping(m.Pod, "force", "started alone, with its data", map[string]any{annotation.ForceNewCluster: "true"}))
	case objects.ImageIn(m.Pod) == objects.NoImage && objects.HasStopped(m.Pod):
		s.Do(step.ImageChange(ec, m.Pod, "image", "", v.VersionFor(ec, m)))
	}
}

// recovered ends a recovery: from the next start on the member is one like any other.
func recovered(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, m *view.Member, loss *v1beta2.QuorumLoss) {
	if m.Pod.Annotations[annotation.ForceNewCluster] == "true" {
		s.Do(loop.Patch{Object: m.Pod, Part: "force", IfCurrent: true,
			Metadata: map[string]any{"annotations": map[string]any{annotation.ForceNewCluster: "false"}}})
		return
	}
	after := s.Remember(ec)
	after.ClusterID, after.MemberBeingAdded, after.MemberBeingUpdated, after.QuorumLoss = m.Answer.Status.ClusterID.String(), "", "", nil
	after.Recovered = &v1beta2.Recovered{ID: loss.ID, Member: loss.From, Revision: m.Answer.Status.Revision, Time: step.TimeOf(v.Now)}
	s.Claim = "recovered"
}
