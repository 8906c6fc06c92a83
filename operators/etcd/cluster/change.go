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
	"example.com/fairlead/operators/etcd/versions"
)

// This file changes which members there are, one at a time: a change waits until the one before
// it is complete.

// restore creates the pods of members that have none: of those that have their data on a volume,
// and of those that have not started yet.
func (p *plan) restore(ec *v1beta2.EtcdCluster) bool {
	p.startAll(ec)
	for _, m := range p.view.members {
		switch {
		case m.wasStopped():
		case !p.view.hasQuorum && m.pod != nil && objects.LacksImage(m.pod) && objects.ImageIn(m.pod) != objects.ImageOf(ec, p.view.versionFor(ec, m).String()):
			p.setImage(ec, m.pod, p.view.versionFor(ec, m), "the image cannot be pulled, and the member is needed for a quorum: "+objects.ImageIn(m.pod))
		case m.isForeign() || m.pod != nil && objects.IsEnding(m.pod) || m.claim != nil && objects.IsEnding(m.claim):
		case m.pod != nil && objects.IsOver(m.pod):
			p.Remove(m.pod, "it has ended")
		case m.pod != nil && !m.isStarted() && p.view.isCurrent && p.view.isOutdated(ec, m):
			p.Remove(m.pod, "the members have changed before it started")
		case m.neverRan() && (m.pod == nil || m.data == ""):
			p.create(ec, m, p.view.versionFor(ec, m), foundingOf(ec))
		case m.pod != nil && pods.IsGated(m.pod, objects.Gate) && m.was.DataUID != "" && m.was.DataUID == m.data:
			p.letGo(m.pod)
		case m.pod == nil && m.claim != nil, !m.isStarted() && p.view.isKnown && m.data == "":
			s := p.view.joining(ec)
			s.IsSealed = m.isStarted()
			p.create(ec, m, p.view.versionFor(ec, m), s)
		}
	}
	for _, m := range p.view.members {
		if m.pod != nil && annotation.Of(m.pod, annotation.InitialCluster) != objects.Sealed && m.hasSpoken() && !objects.IsEnding(m.pod) {
			// It is about this pod alone.
			p.Do(loop.Patch{Object: m.pod, Part: "sealed", Metadata: map[string]any{"annotations": annotation.Named(m.pod, map[string]any{annotation.InitialCluster: objects.Sealed})}})
		}
	}
	return false
}

// wasStopped says whether a member was stopped, to be started again.
func (m *member) wasStopped() bool {
	return m.pod != nil && objects.ImageIn(m.pod) == objects.NoImage && objects.HasStopped(m.pod) && !objects.IsEnding(m.pod)
}

// startStopped starts members that were stopped, while certificates are missing. Nothing else is done then.
func (p *plan) startStopped(ec *v1beta2.EtcdCluster) bool {
	if p.view.certs.Problem == nil {
		return false
	}
	p.report(*p.view.certs.Problem)
	p.startAll(ec)
	return true
}

// startAll starts members that were stopped by somebody who is gone, or for a restore that has
// failed: but not one that is being stopped again by then.
func (p *plan) startAll(ec *v1beta2.EtcdCluster) {
	if r := ec.Status.Restoring; r != nil && r.Phase == v1beta2.RestoreSwitching {
		return
	}
	for _, m := range p.view.members {
		if m.wasStopped() {
			change := imageChange(ec, m.pod, "start", "", p.view.versionFor(ec, m))
			change.IfSame = true // not if anybody has done anything to it since
			p.Do(change)
		}
	}
}

// joining is how a member starts that belongs to a cluster which is there.
func (v *view) joining(ec *v1beta2.EtcdCluster) objects.Start {
	s := objects.Start{Token: string(ec.UID)}
	for _, m := range v.members {
		switch {
		case m.isForeign():
			s.Initial = append(s.Initial, objects.Founder{Name: m.Name, PeerURL: m.PeerURLs[0]})
		default:
			s.Initial = append(s.Initial, objects.Founder{Name: m.name, PeerURL: objects.PeerURLOf(ec, m.name)})
		}
	}
	return s
}

// isOutdated says whether a member that has not started would refuse to, because the member list
// that its pod has is not that of the cluster.
func (v *view) isOutdated(ec *v1beta2.EtcdCluster, m *member) bool {
	has := strings.Split(annotation.Of(m.pod, annotation.InitialCluster), ",")
	want := strings.Split(v.joining(ec).List(), ",")
	slices.Sort(has)
	slices.Sort(want)
	return !slices.Equal(has, want)
}

// versionFor is the version that a member is created with: the one that it had, or that the
// others have.
func (v *view) versionFor(ec *v1beta2.EtcdCluster, m *member) versions.Version {
	if !m.version.IsZero() {
		return m.version
	}
	if v, err := versions.Parse(ec.Status.CurrentVersion); err == nil {
		return v
	}
	return v.wanted
}

// awaitQuorum waits while there is no quorum, or it is not known: nothing can be changed then. Only trust
// is restored.
func (p *plan) awaitQuorum(ec *v1beta2.EtcdCluster) bool {
	if p.view.hasQuorum {
		return false
	}
	if m := p.view.find((*member).refuses); m != nil {
		p.stall(reason.Refused, "%s", capitalized(m.answer.Err.Error()))
		p.later()
		return true
	}
	p.soon()
	if ready := meta.FindStatusCondition(ec.Status.Conditions, status.Ready); p.view.mayHaveQuorum &&
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
	m := p.view.find(func(m *member) bool { return !m.isForeign() && (m.IsLearner || !m.isStarted()) })
	if m == nil {
		return false
	}
	p.activity, p.doing = v1beta2.ConditionScaling, fmt.Sprintf("member %s is being added", m.name)
	p.soon()
	switch {
	case m.isLost():
		p.remove(ec, m, "its data is lost")
	case len(p.view.members) > int(ec.Spec.Size):
		p.remove(ec, m, fmt.Sprintf("spec.size is %d", ec.Spec.Size))
	case !m.isStarted() && p.view.downgrading() != "":
		p.downgrade(ec, "") // until then it cannot join: see mayBeSent
	case m.IsLearner && m.follows:
		p.askLeader(ec, "", members.Request{What: members.Promote, ID: m.ID})
	case m.pod != nil && !p.repairImage(ec, m):
		p.later()
	}
	return true
}

// removeLost removes a member whose data is lost, if the others are a quorum. Its replacement is
// added later, as one that is missing.
func (p *plan) removeLost(ec *v1beta2.EtcdCluster) bool {
	m := p.view.find((*member).isLost)
	if m == nil {
		return false
	}
	p.activity, p.doing = v1beta2.ConditionRecovering, fmt.Sprintf("replacing member %s, whose data is lost", m.name)
	p.soon()
	if p.view.survivesWithout(m, true) {
		p.remove(ec, m, "its data is lost")
	}
	return true
}

// remove removes a member from the cluster. Its pod and its volume are deleted once the cluster
// does not have it any more.
func (p *plan) remove(ec *v1beta2.EtcdCluster, m *member, why string) {
	switch {
	case !p.view.isCurrent:
	case m.ID == p.view.leader:
		p.moveLeader(ec)
	default:
		r := members.Request{What: members.Remove, ID: m.ID, Listed: p.view.ids()}
		p.askLeader(ec, fmt.Sprintf("member %s removed: %s", m.name, why), r)
	}
}

// moveLeader has the leader hand over to the voter that has applied the most.
func (p *plan) moveLeader(ec *v1beta2.EtcdCluster) bool {
	var to *member
	for _, m := range p.view.members {
		if m.isVoter() && m.follows && m.ID != p.view.leader && (to == nil || m.answer.Status.Applied > to.answer.Status.Applied) {
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
	ours := p.view.count(func(m *member) bool { return !m.isForeign() })
	if ours <= int(ec.Spec.Size) {
		return false
	}
	p.activity, p.doing = v1beta2.ConditionScaling, fmt.Sprintf("%d members are to become %d", ours, ec.Spec.Size)
	p.soon()
	victim := p.view.find(func(m *member) bool { return !m.isForeign() && !m.follows })
	for i := len(p.view.members) - 1; i >= 0 && victim == nil; i-- {
		if m := p.view.members[i]; !m.isForeign() && m.ID != p.view.leader {
			victim = m
		}
	}
	if victim != nil && p.view.survivesWithout(victim, true) {
		p.remove(ec, victim, fmt.Sprintf("spec.size is %d", ec.Spec.Size))
	}
	return true
}

// addMissing adds a member if there are fewer than the spec requests: as a learner, which does
// not count for the quorum until it has the data. It is named in status before.
func (p *plan) addMissing(ec *v1beta2.EtcdCluster) bool {
	if ec.Status.MemberBeingAdded != "" && p.view.isCurrent && p.view.of(ec.Status.MemberBeingAdded).isMember {
		p.memory.MemberBeingAdded = "" // done
	}
	ours := p.view.count(func(m *member) bool { return !m.isForeign() })
	if ours >= int(ec.Spec.Size) {
		p.memory.MemberBeingAdded = ""
		return false
	}
	if p.activity == "" {
		p.activity, p.doing = v1beta2.ConditionScaling, fmt.Sprintf("%d members are to become %d", ours, ec.Spec.Size)
	}
	p.soon()
	if !p.view.isWhole() || !p.view.isCurrent {
		return false // etcd refuses it, and rightly
	}
	if p.memory.MemberBeingAdded == "" {
		p.memory.MemberBeingAdded = p.nextName(ec)
		p.claim("member")
		return true
	}
	if p.view.downgrading() != "" {
		p.downgrade(ec, "") // it could not join: see mayBeSent
		return true
	}
	r := p.askLeader(ec, fmt.Sprintf("member %s added", p.memory.MemberBeingAdded), members.Request{
		What: members.Add, PeerURLs: []string{objects.PeerURLOf(ec, p.memory.MemberBeingAdded)}, Learner: p.view.lowest().HasLearners(), Listed: p.view.ids(),
	})
	if r != nil {
		r.NoDowngrade = p.view.leading().version.Minor() < 6 // before, it does not say whether one is enabled
	}
	return true
}

// removeStrays deletes pods and volumes that are no member's: what is left of those that were
// removed. A pod that answers as a member of this cluster, and follows a leader, is left alone:
// then somebody is wrong about who is a member.
func (p *plan) removeStrays(ec *v1beta2.EtcdCluster) bool {
	if !p.view.isCurrent {
		return false
	}
	for _, m := range p.view.strays {
		isOfCluster := m.answer.IsOf(members.ParseID(ec.Status.ClusterID)) && m.answer.HasList() && m.answer.Status.Leader != 0
		switch {
		case m.pod != nil && !objects.IsEnding(m.pod) && !isOfCluster:
			p.Remove(m.pod, "it is no member of the cluster any more")
		case m.pod == nil && !objects.IsEnding(m.claim) && !isKept(ec, m.name):
			// It may have been set aside.
			p.Do(loop.Delete{Object: m.claim, Why: "its member is no member of the cluster any more", IfCurrent: true, IfSame: true})
		}
	}
	return false
}
