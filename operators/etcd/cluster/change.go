package cluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/view"
)

// This file changes which members there are, one at a time: a change waits until the one before
// it is complete.

// restore creates the pods of members that have none: of those that have their data on a volume,
// and of those that have not started yet.
func (p *plan) restore(ec *v1beta2.EtcdCluster) bool {
	p.startAll(ec)
	for _, m := range p.view.Members {
		switch {
		case wasStopped(m):
		case !p.view.HasQuorum && m.Pod != nil && objects.LacksImage(m.Pod) && objects.ImageIn(m.Pod) != objects.ImageOf(ec, p.view.VersionFor(ec, m).String()):
			p.setImage(ec, m.Pod, p.view.VersionFor(ec, m), "the image cannot be pulled, and the member is needed for a quorum: "+objects.ImageIn(m.Pod))
		case m.IsForeign() || m.Pod != nil && objects.IsEnding(m.Pod) || m.Claim != nil && objects.IsEnding(m.Claim):
		case m.Pod != nil && objects.IsOver(m.Pod):
			p.Remove(m.Pod, "it has ended")
		case m.Pod != nil && !m.IsStarted() && p.view.IsCurrent && isOutdated(&p.view, ec, m):
			p.Remove(m.Pod, "the members have changed before it started")
		case m.NeverRan() && (m.Pod == nil || m.Data == ""):
			p.create(ec, m, p.view.VersionFor(ec, m), foundingOf(ec))
		case m.Pod != nil && pods.IsGated(m.Pod, objects.Gate) && m.Was.DataUID != "" && m.Was.DataUID == m.Data:
			p.letGo(m.Pod)
		case m.Pod == nil && m.Claim != nil, !m.IsStarted() && p.view.IsKnown && m.Data == "":
			s := p.view.Joining(ec)
			s.IsSealed = m.IsStarted()
			p.create(ec, m, p.view.VersionFor(ec, m), s)
		}
	}
	for _, m := range p.view.Members {
		if m.Pod != nil && annotation.Of(m.Pod, annotation.InitialCluster) != objects.Sealed && m.HasSpoken() && !objects.IsEnding(m.Pod) {
			// It is about this pod alone.
			p.Do(loop.Patch{Object: m.Pod, Part: "sealed", Metadata: map[string]any{"annotations": annotation.Named(m.Pod, map[string]any{annotation.InitialCluster: objects.Sealed})}})
		}
	}
	return false
}

// wasStopped says whether a member was stopped, to be started again.
func wasStopped(m *view.Member) bool {
	return m.Pod != nil && objects.ImageIn(m.Pod) == objects.NoImage && objects.HasStopped(m.Pod) && !objects.IsEnding(m.Pod)
}

// startStopped starts members that were stopped, while certificates are missing. Nothing else is done then.
func (p *plan) startStopped(ec *v1beta2.EtcdCluster) bool {
	if p.view.Certs.Problem == nil {
		return false
	}
	p.report(*p.view.Certs.Problem)
	p.startAll(ec)
	return true
}

// startAll starts members that were stopped by somebody who is gone, or for a restore that has
// failed: but not one that is being stopped again by then.
func (p *plan) startAll(ec *v1beta2.EtcdCluster) {
	if r := ec.Status.Restoring; r != nil && r.Phase == v1beta2.RestoreSwitching {
		return
	}
	for _, m := range p.view.Members {
		if wasStopped(m) {
			change := imageChange(ec, m.Pod, "start", "", p.view.VersionFor(ec, m))
			change.IfSame = true // not if anybody has done anything to it since
			p.Do(change)
		}
	}
}

// isOutdated says whether a member that has not started would refuse to, because the member list
// that its pod has is not that of the cluster.
func isOutdated(v *view.View, ec *v1beta2.EtcdCluster, m *view.Member) bool {
	has := strings.Split(annotation.Of(m.Pod, annotation.InitialCluster), ",")
	want := strings.Split(v.Joining(ec).List(), ",")
	slices.Sort(has)
	slices.Sort(want)
	return !slices.Equal(has, want)
}

// awaitQuorum waits while there is no quorum, or it is not known: nothing can be changed then. Only trust
// is restored.
func (p *plan) awaitQuorum(ec *v1beta2.EtcdCluster) bool {
	if p.view.HasQuorum {
		return false
	}
	if m := p.view.Find((*view.Member).Refuses); m != nil {
		p.stall(reason.Refused, "%s", capitalized(m.Answer.Err.Error()))
		p.later()
		return true
	}
	p.soon()
	if ready := meta.FindStatusCondition(ec.Status.Conditions, status.Ready); p.view.MayHaveQuorum &&
		ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == ec.Generation {
		return true // what is not known for a moment is as it was
	}
	p.activity, p.doing = v1beta2.ConditionRecovering, "waiting for a quorum of members"
	p.retrust(ec)
	return true
}

// settleLearner promotes a learner that has caught up, and removes one that is lost. While there
// is one, nothing else is changed of the members.
func (p *plan) settleLearner(ec *v1beta2.EtcdCluster) bool {
	m := p.view.Find(func(m *view.Member) bool { return !m.IsForeign() && (m.IsLearner || !m.IsStarted()) })
	if m == nil {
		return false
	}
	p.activity, p.doing = v1beta2.ConditionScaling, fmt.Sprintf("member %s is being added", m.PodName)
	p.soon()
	switch {
	case m.IsLost():
		p.remove(ec, m, "its data is lost")
	case len(p.view.Members) > int(ec.Spec.Size):
		p.remove(ec, m, fmt.Sprintf("spec.size is %d", ec.Spec.Size))
	case !m.IsStarted() && p.view.Downgrading() != "":
		p.downgrade(ec, "") // until then it cannot join: see mayBeSent
	case m.IsLearner && m.Follows:
		p.askLeader(ec, "", members.Request{What: members.Promote, ID: m.ID})
	case m.Pod != nil && !p.repairImage(ec, m):
		p.later()
	}
	return true
}

// removeLost removes a member whose data is lost, if the others are a quorum. Its replacement is
// added later, as one that is missing.
func (p *plan) removeLost(ec *v1beta2.EtcdCluster) bool {
	m := p.view.Find((*view.Member).IsLost)
	if m == nil {
		return false
	}
	p.activity, p.doing = v1beta2.ConditionRecovering, fmt.Sprintf("replacing member %s, whose data is lost", m.PodName)
	p.soon()
	if p.view.SurvivesWithout(m, true) {
		p.remove(ec, m, "its data is lost")
	}
	return true
}

// remove removes a member from the cluster. Its pod and its volume are deleted once the cluster
// does not have it any more.
func (p *plan) remove(ec *v1beta2.EtcdCluster, m *view.Member, why string) {
	switch {
	case !p.view.IsCurrent:
	case m.ID == p.view.Leader:
		p.moveLeader(ec)
	default:
		r := members.Request{What: members.Remove, ID: m.ID, Listed: p.view.Ids()}
		p.askLeader(ec, fmt.Sprintf("member %s removed: %s", m.PodName, why), r)
	}
}

// moveLeader has the leader hand over to the voter that has applied the most.
func (p *plan) moveLeader(ec *v1beta2.EtcdCluster) bool {
	var to *view.Member
	for _, m := range p.view.Members {
		if m.IsVoter() && m.Follows && m.ID != p.view.Leader && (to == nil || m.Answer.Status.Applied > to.Answer.Status.Applied) {
			to = m
		}
	}
	if to == nil || p.askLeader(ec, "", members.Request{What: members.MoveLeader, ID: to.ID}) == nil {
		return false
	}
	p.soon()
	return true
}

// removeSurplus removes a member if there are more than the spec requests: the one that is
// missed least.
func (p *plan) removeSurplus(ec *v1beta2.EtcdCluster) bool {
	ours := p.view.Count(func(m *view.Member) bool { return !m.IsForeign() })
	if ours <= int(ec.Spec.Size) {
		return false
	}
	p.activity, p.doing = v1beta2.ConditionScaling, fmt.Sprintf("%d members are to become %d", ours, ec.Spec.Size)
	p.soon()
	victim := p.view.Find(func(m *view.Member) bool { return !m.IsForeign() && !m.Follows })
	for i := len(p.view.Members) - 1; i >= 0 && victim == nil; i-- {
		if m := p.view.Members[i]; !m.IsForeign() && m.ID != p.view.Leader {
			victim = m
		}
	}
	if victim != nil && p.view.SurvivesWithout(victim, true) {
		p.remove(ec, victim, fmt.Sprintf("spec.size is %d", ec.Spec.Size))
	}
	return true
}

// addMissing adds a member if there are fewer than the spec requests: as a learner, which does
// not count for the quorum until it has the data. It is named in status before.
func (p *plan) addMissing(ec *v1beta2.EtcdCluster) bool {
	if ec.Status.MemberBeingAdded != "" && p.view.IsCurrent && p.view.Of(ec.Status.MemberBeingAdded).IsMember {
		p.memory.MemberBeingAdded = "" // done
	}
	ours := p.view.Count(func(m *view.Member) bool { return !m.IsForeign() })
	if ours >= int(ec.Spec.Size) {
		p.memory.MemberBeingAdded = ""
		return false
	}
	if p.activity == "" {
		p.activity, p.doing = v1beta2.ConditionScaling, fmt.Sprintf("%d members are to become %d", ours, ec.Spec.Size)
	}
	p.soon()
	if !p.view.IsWhole() || !p.view.IsCurrent {
		return false // etcd refuses it, and rightly
	}
	if p.memory.MemberBeingAdded == "" {
		p.memory.MemberBeingAdded = p.nextName(ec)
		p.claim("member")
		return true
	}
	if p.view.Downgrading() != "" {
		p.downgrade(ec, "") // it could not join: see mayBeSent
		return true
	}
	r := p.askLeader(ec, fmt.Sprintf("member %s added", p.memory.MemberBeingAdded), members.Request{
		What: members.Add, PeerURLs: []string{objects.PeerURLOf(ec, p.memory.MemberBeingAdded)}, Learner: p.view.Lowest().HasLearners(), Listed: p.view.Ids(),
	})
	if r != nil {
		r.NoDowngrade = p.view.Leading().Version.Minor() < 6 // before, it does not say whether one is enabled
	}
	return true
}

// removeStrays deletes pods and volumes that are no member's: what is left of those that were
// removed. A pod that answers as a member of this cluster, and follows a leader, is left alone:
// then somebody is wrong about who is a member.
func (p *plan) removeStrays(ec *v1beta2.EtcdCluster) bool {
	if !p.view.IsCurrent {
		return false
	}
	for _, m := range p.view.Strays {
		isOfCluster := m.Answer.IsOf(members.ParseID(ec.Status.ClusterID)) && m.Answer.HasList() && m.Answer.Status.Leader != 0
		switch {
		case m.Pod != nil && !objects.IsEnding(m.Pod) && !isOfCluster:
			p.Remove(m.Pod, "it is no member of the cluster any more")
		case m.Pod == nil && !objects.IsEnding(m.Claim) && !isKept(ec, m.PodName):
			// It may have been set aside.
			p.Do(loop.Delete{Object: m.Claim, Why: "its member is no member of the cluster any more", IfCurrent: true, IfSame: true})
		}
	}
	return false
}
