package membership

import (
	"cmp"
	"errors"
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
	"example.com/fairlead/operators/etcd/rollout"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// This file changes which members there are, one at a time: a change waits until the one before
// it is complete.

// Restore creates the pods of members that have none: of those that have their data on a volume,
// and of those that have not started yet.
func Restore(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	s.Do(startAll(ec, v)...)
	for _, m := range v.Members {
		switch {
		case wasStopped(m):
		case !v.HasQuorum && m.Pod != nil && (objects.LacksImage(m.Pod) || m.IsTooLow()) && objects.ImageIn(m.Pod) != objects.ImageOf(ec, v.VersionFor(ec, m).String()):
			why := "the image cannot be pulled"
			if m.IsTooLow() {
				why = "its version is lower than the cluster's"
			}
			s.Do(step.ImageChange(ec, m.Pod, "image", why+", and the member is needed for a quorum: "+objects.ImageIn(m.Pod), v.VersionFor(ec, m)))
		case m.IsForeign() || m.Pod != nil && objects.IsEnding(m.Pod) || m.Claim != nil && objects.IsEnding(m.Claim):
		case m.Pod != nil && pods.IsOver(m.Pod):
			s.Do(step.Removed(m.Pod, "it has ended"))
		case m.Pod != nil && !m.IsStarted() && v.IsCurrent && isOutdated(ec, v, m):
			s.Do(step.Removed(m.Pod, "the members have changed before it started"))
		case m.NeverRan() && (m.Pod == nil || m.Data == ""):
			s.Do(step.Created(ec, v, m, v.VersionFor(ec, m), step.FoundingOf(ec))...)
		case m.Pod != nil && pods.IsGated(m.Pod, objects.Gate) && m.Was.DataUID != "" && m.Was.DataUID == m.Data:
			s.Do(step.LetGo(m.Pod))
		case m.Pod == nil && m.Claim != nil, !m.IsStarted() && v.IsKnown && m.Data == "":
			start := v.Joining(ec)
			start.IsLearner = m.IsLearner
			if start.IsSealed = m.IsStarted(); !start.IsSealed && v.NextToLeave(ec) != nil {
				start.InPlaceOf = v.NextToLeave(ec).PodName
			}
			s.Do(step.Created(ec, v, m, v.VersionFor(ec, m), start)...)
		}
	}
	for _, m := range v.Members {
		if m.Pod != nil && m.Pod.Annotations[annotation.InitialCluster] != objects.Sealed && m.HasSpoken() && !objects.IsEnding(m.Pod) {
			// It is about this pod alone.
			s.Do(loop.Patch{Object: m.Pod, Part: "sealed", Metadata: map[string]any{"annotations": map[string]any{annotation.InitialCluster: objects.Sealed}}})
		}
	}
	return s
}

// wasStopped says whether a member was stopped, to be started again.
func wasStopped(m *view.Member) bool {
	return m.Pod != nil && objects.ImageIn(m.Pod) == objects.NoImage && objects.HasStopped(m.Pod) && !objects.IsEnding(m.Pod)
}

// StartStopped starts members that were stopped, while certificates are missing. Nothing else is done then.
func StartStopped(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if v.Certs.Problem == nil {
		return s
	}
	s.Note(*v.Certs.Problem)
	s.Do(startAll(ec, v)...)
	return s.Last()
}

// startAll starts members that were stopped by somebody who is gone, or for a restore that has
// failed: but not one that is being stopped again by then.
func startAll(ec *v1beta2.EtcdCluster, v *view.View) (writes []loop.Write) {
	if r := ec.Status.Restoring; r != nil && r.Phase == v1beta2.RestoreSwitching {
		return nil
	}
	for _, m := range v.Members {
		if wasStopped(m) {
			change := step.ImageChange(ec, m.Pod, "start", "", v.VersionFor(ec, m))
			change.IfSame = true // not if anybody has done anything to it since
			writes = append(writes, change)
		}
	}
	return writes
}

// isOutdated says whether a member that has not started would refuse to, because the member list
// that its pod has is not that of the cluster.
func isOutdated(ec *v1beta2.EtcdCluster, v *view.View, m *view.Member) bool {
	has := strings.Split(m.Pod.Annotations[annotation.InitialCluster], ",")
	want := strings.Split(v.Joining(ec).List(), ",")
	slices.Sort(has)
	slices.Sort(want)
	return !slices.Equal(has, want)
}

// AwaitQuorum waits while there is no quorum, or it is not known: nothing can be changed then. Only trust
// is restored.
func AwaitQuorum(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if v.HasQuorum {
		return s
	}
	if v.Find((*view.Member).Refuses) != nil {
		s.Note(rollout.Refusal(ec, v))
		s.Later()
		return s.Last()
	}
	s.Soon()
	if ready := meta.FindStatusCondition(ec.Status.Conditions, status.Ready); v.MayHaveQuorum &&
		ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == ec.Generation {
		return s.Last() // what is not known for a moment is as it was
	}
	s.Activity, s.Doing = v1beta2.ConditionRecovering, "waiting for a quorum of members"
	rollout.Retrust(ec, v, &s)
	return s.Last()
}

// SettleLearner promotes a learner that has caught up, and removes one that is lost. While there
// is one, nothing else is changed of the members. With authentication on, a learner does not tell whether it follows a
// client that no other member has given a token, or one of another kind, as while a running etcd is joined; the leader
// promotes none that is far behind.
func SettleLearner(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	m := v.Find(func(m *view.Member) bool { return !m.IsForeign() && (m.IsLearner || !m.IsStarted()) })
	if m == nil {
		return s
	}
	s.Activity, s.Doing = v1beta2.ConditionScaling, fmt.Sprintf("member %s is being added", m.PodName)+inPlaceOf(ec, v)
	s.Soon()
	switch {
	case m.IsLost():
		remove(ec, v, &s, m, "its data is lost")
	case v.Ours() > v.Requested(ec):
		remove(ec, v, &s, m, fmt.Sprintf("spec.size is %d", ec.Spec.Size))
	case !m.IsStarted() && v.Downgrading() != "":
		s.Request = rollout.Downgrade(ec, v, "") // until then it cannot join: see mayBeSent
	case m.IsLearner && (m.Follows || errors.Is(m.Answer.Err, members.ErrIsLearner)):
		s.Request = step.AskedLeader(ec, v, "", members.Request{What: members.Promote, ID: m.ID})
	case m.Pod != nil:
		rollout.RepairImage(ec, v, &s, m)
	}
	return s.Last()
}

// RemoveLost removes a member whose data is lost, if the others are a quorum. Its replacement is
// added later, as one that is missing.
func RemoveLost(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	m := v.Find((*view.Member).IsLost)
	if m == nil {
		return s
	}
	is := "lost"
	if m.Differs {
		is = "not that of the others"
	}
	s.Activity, s.Doing = v1beta2.ConditionRecovering, fmt.Sprintf("replacing member %s, whose data is %s", m.PodName, is)
	s.Soon()
	if v.SurvivesWithout(m, true) {
		remove(ec, v, &s, m, "its data is "+is)
	}
	return s.Last()
}

// remove requests to remove a member from the cluster, or what comes before. Its pod and its volume are deleted once the
// cluster does not have it any more. If it is the one that was added last, that is over before: nobody may add it again,
// with a pod that has started.
func remove(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, m *view.Member, why string) {
	switch {
	case !v.IsCurrent:
	case m.PodName != "" && m.PodName == ec.Status.MemberBeingAdded:
		s.Remember(ec).MemberBeingAdded = ""
		s.Claim = "member"
	case m.ID == v.Leader:
		s.Request = step.HandOver(ec, v)
	default:
		s.Request = step.AskedLeader(ec, v, fmt.Sprintf("member %s removed: %s", m.ShownName(ec), why), members.Request{What: members.Remove, ID: m.ID, Listed: v.IDs()})
	}
}

// RemoveSurplus removes a member if there are more than the spec requests: one that is leaving, or the
// one that is missed least.
func RemoveSurplus(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	ours := v.Ours()
	if ours <= int(ec.Spec.Size) {
		return s
	}
	s.Activity, s.Doing = v1beta2.ConditionScaling, fmt.Sprintf("%d members are to become %d", ours, ec.Spec.Size)
	s.Soon()
	if victim := surplus(ec, v, ours); victim != nil && v.SurvivesWithout(victim, true) {
		remove(ec, v, &s, victim, cmp.Or(victim.Leaving, fmt.Sprintf("spec.size is %d", ec.Spec.Size)))
	}
	return s.Last()
}

// surplus is the member that is removed if there are too many; nil if none can be now. The one that is leaving goes when
// all others serve, the one in its place among them. Of those that serve it is the newest that does not lead, in the zone
// that has most.
func surplus(ec *v1beta2.EtcdCluster, v *view.View, ours int) *view.Member {
	leaving, down := v.NextToLeave(ec), v.Find(func(m *view.Member) bool { return !m.IsForeign() && !m.Follows })
	switch {
	case leaving != nil && down != nil && down != leaving && ours == v.Requested(ec):
		return nil
	case leaving != nil && (down == nil || down == leaving):
		return leaving
	case down != nil:
		return down
	}
	inZone := map[string]int{}
	for _, m := range v.Members {
		if !m.IsForeign() {
			inZone[v.Zone(m)]++
		}
	}
	var least *view.Member
	for _, m := range slices.Backward(v.Members) {
		if !m.IsForeign() && m.ID != v.Leader && (least == nil || inZone[v.Zone(m)] > inZone[v.Zone(least)]) {
			least = m
		}
	}
	return least
}

// inPlaceOf says for which member another one is added, if for any.
func inPlaceOf(ec *v1beta2.EtcdCluster, v *view.View) string {
	if m := v.NextToLeave(ec); m != nil {
		return fmt.Sprintf(" in place of member %s: %s", m.PodName, m.Leaving)
	}
	return ""
}

// AddMissing adds a member if there are fewer than the spec requests, or one is leaving: as a learner, which does
// not count for the quorum until it has the data. It is named in status before.
func AddMissing(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	adding, ours := ec.Status.MemberBeingAdded, v.Ours()
	isMissing := ours < v.Requested(ec)
	if adding != "" && (!isMissing || v.IsCurrent && v.Of(adding).IsMember) {
		adding, s.Remember(ec).MemberBeingAdded = "", "" // done
	}
	if !isMissing {
		return s
	}
	s.Activity, s.Doing = v1beta2.ConditionScaling, fmt.Sprintf("%d members are to become %d", ours, ec.Spec.Size)
	if ours == int(ec.Spec.Size) {
		s.Doing = "a member is to be added" + inPlaceOf(ec, v)
	}
	s.Soon()
	switch {
	case !v.IsWhole():
		s.Doing += ", once all members serve"
		return s // etcd refuses it, and rightly
	case !v.IsCurrent:
		return s
	case adding == "":
		names, used := step.NewNames(ec, v, 1)
		s.Remember(ec).MemberBeingAdded, s.Remember(ec).MemberNamesUsed = names[0], used
		s.Claim = "member"
	case v.Downgrading() != "":
		s.Request = rollout.Downgrade(ec, v, "") // it could not join: see mayBeSent
	default:
		s.Request = step.AskedLeader(ec, v, fmt.Sprintf("member %s added", adding)+inPlaceOf(ec, v), members.Request{
			What: members.Add, PeerURLs: []string{objects.PeerURLOf(ec, adding)}, Learner: v.Lowest().HasLearners(), Listed: v.IDs(),
			NoDowngrade: v.LeadingAnywhere() != nil && v.LeadingAnywhere().Version.Minor() < 6, // before, it does not say whether one is enabled
		})
	}
	return s.Last()
}

// RemoveStrays deletes pods and volumes that are no member's: what is left of those that were
// removed. A pod that answers as a member of this cluster, and follows a leader, is left alone:
// then somebody is wrong about who is a member.
func RemoveStrays(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if !v.IsCurrent {
		return s
	}
	for _, m := range v.Strays {
		isOfCluster := m.Answer.IsOf(members.ParseID(ec.Status.ClusterID)) && m.Answer.HasList() && m.Answer.Status.Leader != 0
		switch {
		case m.Pod != nil && !objects.IsEnding(m.Pod) && !isOfCluster:
			s.Do(step.Removed(m.Pod, "it is no member of the cluster any more"))
		case m.Pod == nil:
			dropped(ec, v, m, "its member is no member of the cluster any more", &s)
		}
	}
	return s
}
