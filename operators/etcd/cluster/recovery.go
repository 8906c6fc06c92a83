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
	if p.view.hasQuorum {
		return false
	}
	var lost []string
	var surviving []*member
	voters := 0
	for _, m := range p.view.members {
		if !m.isVoter() || !m.isStarted() {
			continue
		}
		voters++
		if m.isLost() {
			lost = append(lost, m.name)
		} else if !m.isForeign() {
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
		if !m.hasAnswered() {
			p.report(status.Problem{Reason: reason.QuorumLost, Retriable: true, Message: fmt.Sprintf(
				"Waiting for member %s, which survives, to say how far it got. If it cannot, delete its pod and its volume: then it counts as lost", m.name)})
			return true
		}
	}
	p.memory.QuorumLoss.Accepted, p.memory.QuorumLoss.From = true, surviving[0].name
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
func (p *plan) reportLoss(ec *v1beta2.EtcdCluster, lost []string, surviving []*member) {
	slices.Sort(lost)
	slices.SortStableFunc(surviving, func(a, b *member) int { return -compareProgress(a, b) })
	loss := &v1beta2.QuorumLoss{Lost: lost}
	for _, m := range surviving {
		loss.Surviving = append(loss.Surviving, m.name)
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
func compareProgress(a, b *member) int {
	progress := func(m *member) []uint64 {
		if !m.hasAnswered() {
			return nil
		}
		return []uint64{m.answer.Status.RaftIndex, m.answer.Status.Applied}
	}
	return slices.Compare(progress(a), progress(b))
}

// startFrom starts the cluster again from the survivor that was named.
func (p *plan) startFrom(ec *v1beta2.EtcdCluster, loss *v1beta2.QuorumLoss) {
	p.activity, p.doing = v1beta2.ConditionRecovering, fmt.Sprintf("starting again from member %s", loss.From)
	p.soon()
	m := p.view.of(loss.From)
	message := fmt.Sprintf("Starting again from member %s, whose data survives", loss.From)
	if m.pod != nil && !m.hasAnswered() {
		message += "; " + m.problem.words
	}
	p.report(status.Problem{Reason: reason.Recovering, Retriable: true, Message: message})
	others := false
	for _, other := range p.view.present {
		if other == m || other.pod == nil {
			continue
		}
		others = true
		if !objects.IsEnding(other.pod) {
			p.Remove(other.pod, "the cluster starts again from member "+loss.From)
		}
	}
	switch {
	case m.data == "":
		p.memory.QuorumLoss = nil // it is lost as well: what is left is looked at anew
	case m.pod == nil:
		p.create(ec, m, p.view.versionFor(ec, m), objects.Start{Force: true, Token: string(ec.UID), IsSealed: true})
	case others || objects.IsEnding(m.pod):
		// they must not vote
	case m.leadsAlone():
		p.recovered(m, loss)
	case annotation.Of(m.pod, annotation.ForceNewCluster) != "true":
		p.Do(objects.Stopping(m.pod, "force", "started alone, with its data", map[string]any{annotation.ForceNewCluster: "true"}))
	case objects.ImageIn(m.pod) == objects.NoImage && objects.HasStopped(m.pod):
		p.setImage(ec, m.pod, p.view.versionFor(ec, m), "")
	}
}

// recovered ends a recovery: from the next start on the member is one like any other.
func (p *plan) recovered(m *member, loss *v1beta2.QuorumLoss) {
	if annotation.Of(m.pod, annotation.ForceNewCluster) == "true" {
		p.Do(loop.Patch{Object: m.pod, Part: "force", IfCurrent: true,
			Metadata: map[string]any{"annotations": annotation.Named(m.pod, map[string]any{annotation.ForceNewCluster: "false"})}})
		return
	}
	p.memory.ClusterID = m.answer.Status.ClusterID.String()
	p.memory.MemberBeingAdded, p.memory.MemberBeingUpdated = "", ""
	p.memory.Recovered = &v1beta2.Recovered{ID: loss.ID, Member: loss.From, Revision: m.answer.Status.Revision, Time: timeOf(p.view.now)}
	p.memory.QuorumLoss = nil
	p.claim("recovered")
}

func timeOf(now time.Time) *metav1.Time {
	t := metav1.NewTime(now.Truncate(time.Second))
	return &t
}
