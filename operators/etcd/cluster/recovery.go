package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
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

// recoverQuorum takes a cluster without quorum one step on. It returns false if quorum is not
// lost.
func (p *plan) recoverQuorum(ec *v1beta2.EtcdCluster) bool {
	if loss := ec.Status.QuorumLoss; loss != nil && loss.From != "" {
		p.startFrom(ec, loss)
		return true
	}
	p.memory.QuorumLoss = nil
	if p.view.HasQuorum {
		return false
	}
	var lost []string
	var surviving []*view.Member
	voters := 0
	for _, m := range p.view.Members {
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
	if len(lost) == 0 || voters-len(lost) >= objects.Majority(voters) {
		return false
	}
	p.reportLoss(ec, lost, surviving)
	p.restore(ec) // what survives is needed, and may know more
	if ec.Spec.AcceptDataLoss != p.memory.QuorumLoss.ID {
		p.later()
		return true
	}
	if p.recoverFrom(ec) {
		return true
	}
	p.soon()
	p.activity, p.doing = v1beta2.ConditionRecovering, "starting again from what survives"
	if len(surviving) == 0 {
		p.startAnew(ec)
		return true
	}
	for _, m := range surviving {
		if !m.HasAnswered() {
			p.report(status.Problem{Reason: reason.QuorumLost, Retriable: true, Message: fmt.Sprintf(
				"Waiting for member %s, which survives, to say how far it got. If it cannot, delete its pod and its volume: then it counts as lost", m.PodName)})
			return true
		}
	}
	p.memory.QuorumLoss.Accepted, p.memory.QuorumLoss.From = true, surviving[0].PodName
	p.claim("survivor")
	return true
}

// recoverFrom answers the loss of quorum with a backup, if the user wants that: it is restored as
// by an EtcdRestore (restoring.go).
func (p *plan) recoverFrom(ec *v1beta2.EtcdCluster) bool {
	if ec.Spec.RecoverFrom == nil {
		return false
	}
	if p.memory.Restoring == nil {
		p.begin(ec, &v1beta2.Restoring{ID: p.memory.QuorumLoss.ID, Source: *ec.Spec.RecoverFrom.DeepCopy(), KeepOld: true})
		p.reportRestore()
	}
	p.later()
	return true
}

// reportLoss reports the loss of quorum. Its ID is that of what is lost: if more is, it is
// another loss.
func (p *plan) reportLoss(ec *v1beta2.EtcdCluster, lost []string, surviving []*view.Member) {
	slices.Sort(lost)
	slices.SortStableFunc(surviving, func(a, b *view.Member) int { return -compareProgress(a, b) })
	loss := &v1beta2.QuorumLoss{Lost: lost}
	for _, m := range surviving {
		loss.Surviving = append(loss.Surviving, m.PodName)
	}
	loss.ID = names.Hash(string(ec.UID) + "/" + strings.Join(lost, ","))
	p.memory.QuorumLoss = loss
	p.activity, p.doing = "", ""
	if len(surviving) == 0 {
		p.stall(reason.QuorumLost, "The data of all members is lost: %s. To start an empty cluster, set spec.acceptDataLoss to %q; to start from a backup, set spec.recoverFrom as well", strings.Join(lost, ", "), loss.ID)
		return
	}
	p.stall(reason.QuorumLost, "Quorum is lost: the data of %s is lost, %s survives. If more volumes can be brought back, do that. To start again from what survives, without the writes that only the lost members had, set spec.acceptDataLoss to %q; to start from a backup, set spec.recoverFrom as well",
		strings.Join(lost, ", "), strings.Join(loss.Surviving, ", "), loss.ID)
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
func (p *plan) startFrom(ec *v1beta2.EtcdCluster, loss *v1beta2.QuorumLoss) {
	p.activity, p.doing = v1beta2.ConditionRecovering, fmt.Sprintf("starting again from member %s", loss.From)
	p.soon()
	m := p.view.Of(loss.From)
	message := fmt.Sprintf("Starting again from member %s, whose data survives", loss.From)
	if m.Pod != nil && !m.HasAnswered() {
		message += "; " + m.Problem.Words
	}
	p.report(status.Problem{Reason: reason.Recovering, Retriable: true, Message: message})
	others := false
	for _, other := range p.view.Present {
		if other == m || other.Pod == nil {
			continue
		}
		others = true
		if !objects.IsEnding(other.Pod) {
			p.Remove(other.Pod, "the cluster starts again from member "+loss.From)
		}
	}
	switch {
	case m.Data == "":
		p.memory.QuorumLoss = nil // it is lost as well: what is left is looked at anew
	case m.Pod == nil:
		p.create(ec, m, p.view.VersionFor(ec, m), objects.Start{Force: true, Token: string(ec.UID), IsSealed: true})
	case others || objects.IsEnding(m.Pod):
		// they must not vote
	case m.LeadsAlone():
		p.recovered(m, loss)
	case annotation.Of(m.Pod, annotation.ForceNewCluster) != "true":
		p.Do(objects.Stopping(m.Pod, "force", "started alone, with its data", map[string]any{annotation.ForceNewCluster: "true"}))
	case objects.ImageIn(m.Pod) == objects.NoImage && objects.HasStopped(m.Pod):
		p.setImage(ec, m.Pod, p.view.VersionFor(ec, m), "")
	}
}

// recovered ends a recovery: from the next start on the member is one like any other.
func (p *plan) recovered(m *view.Member, loss *v1beta2.QuorumLoss) {
	if annotation.Of(m.Pod, annotation.ForceNewCluster) == "true" {
		p.Do(loop.Patch{Object: m.Pod, Part: "force", IfCurrent: true,
			Metadata: map[string]any{"annotations": annotation.Named(m.Pod, map[string]any{annotation.ForceNewCluster: "false"})}})
		return
	}
	p.memory.ClusterID = m.Answer.Status.ClusterID.String()
	p.memory.MemberBeingAdded, p.memory.MemberBeingUpdated = "", ""
	p.memory.Recovered = &v1beta2.Recovered{ID: loss.ID, Member: loss.From, Revision: m.Answer.Status.Revision, Time: timeOf(p.view.Now)}
	p.memory.QuorumLoss = nil
	p.claim("recovered")
}

func timeOf(now time.Time) *metav1.Time {
	t := metav1.NewTime(now.Truncate(time.Second))
	return &t
}
