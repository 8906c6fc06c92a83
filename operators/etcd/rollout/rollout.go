package rollout

import (
	"cmp"
	"fmt"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/versions"
	"example.com/fairlead/operators/etcd/view"
)

// This file changes members one at a time, each when all others follow the leader, and the
// leader last, which hands over before: so there is always a quorum, and writes wait for no
// election. The image is changed in the pod, so that a member keeps its data also where it has
// no volume; other changes of a pod need another pod.

// RollOut takes the members to the version and the pods that the spec requests.
func RollOut(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if !v.IsCurrent {
		return s
	}
	to, err := stepTo(ec, v, &s)
	if err != nil {
		s.Stall(reason.VersionRefused, "%v", err)
		to = v.Lowest()
	}
	if m := tooSmallFor(ec, v); m != nil {
		s.Stall(reason.QuotaRefused, "spec.quotaBackendBytes is %s, and the database of member %s has %s: at that, nobody could write any more. Delete keys, or set a greater one",
			ec.Spec.QuotaBackendBytes, m.PodName, Rounded(m.Answer.Status.DBSize))
		return s
	}
	isUpgrade := to != v.Lowest() || to != v.Highest()
	if isUpgrade && prepare(ec, v, &s, to) || changeOne(ec, v, &s, to) || settleDowngrade(ec, v, &s, to) {
		return s.Last()
	}
	return s
}

// changeOne changes the next member that is not as it is to be. Which one that is, status remembers
// before: no other is changed until it is complete, whatever late caches show of its pod.
func changeOne(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, to versions.Version) bool {
	updating := ec.Status.MemberBeingUpdated
	if m := v.Of(updating); updating != "" && (!m.IsMember || isAsWanted(m, ec, to)) {
		updating, s.Remember(ec).MemberBeingUpdated = "", ""
	}
	next := nextToChange(ec, v, updating, to)
	if next == nil {
		return awaitChanged(v, s, updating, to)
	}
	if wasEdited(next) {
		s.Later() // a webhook may make the same of it again
	} else {
		s.Soon()
	}
	s.Rollout = fmt.Sprintf("now %s: %s", next.PodName, whyChanged(next, objects.ImageOf(ec, to.String())))
	others := v.Find(func(m *view.Member) bool { return m.ID != next.ID && !m.IsForeign() && !m.IsSettled() })
	if others != nil {
		if others.NeedsRestart && isCutOff(ec, others) { // it is missed already, and this brings it back
			s.Do(step.Restarted(v, others, "to trust another CA: nobody can talk to it"))
			return true
		}
		waits := ", waiting for member " + others.PodName
		s.Doing += waits
		s.Rollout += waits + ": " + cmp.Or(others.Problem.Words, "it does not run as its pod says yet")
		return true
	}
	if updating == "" {
		s.Remember(ec).MemberBeingUpdated = next.PodName
		s.Claim = "change"
		return true
	}
	if next.ID == v.Leader {
		if s.Request = step.HandOver(ec, v); s.Request != nil {
			s.Soon()
			return true
		}
	}
	if !objects.IsStopping(next.Pod) || next.NeedsRestart {
		s.Do(changed(ec, v, next, to))
	}
	return true
}

// changed takes a member's pod on to what it is to be.
func changed(ec *v1beta2.EtcdCluster, v *view.View, m *view.Member, to versions.Version) loop.Write {
	isSame := m.Version == to
	switch image := objects.ImageOf(ec, to.String()); {
	case m.NeedsRestart:
		return step.Restarted(v, m, "to trust another CA")
	case wasEdited(m):
		return step.ImageChange(ec, m.Pod, "image", "", to)
	case objects.ImageIn(m.Pod) == image:
		return step.Removed(m.Pod, "spec.pod has changed")
	case isSame && objects.ImageIn(m.Pod) != objects.NoImage:
		return step.Restarted(v, m, "with image "+image) // that it has would not tell when it runs
	case isSame:
		return step.ImageChange(ec, m.Pod, "image", "", to)
	}
	return step.ImageChange(ec, m.Pod, "image", fmt.Sprintf("member %s changed from %s to %s", m.PodName, m.Version, to), to)
}

// nextToChange is the member that is being changed or, if none is, the next that is not as it is to
// be: one that is down anyway is first, the leader last.
func nextToChange(ec *v1beta2.EtcdCluster, v *view.View, updating string, to versions.Version) *view.Member {
	var next *view.Member
	for _, m := range v.Members {
		switch {
		case m.IsForeign() || m.Pod == nil || objects.IsEnding(m.Pod) || !differs(m, ec, to):
		case updating != "" && updating != m.PodName:
		case next == nil || !m.Follows && next.Follows || next.ID == v.Leader && m.Follows:
			next = m
		}
	}
	return next
}

// isAsWanted says whether a member is as it is to be, and follows the leader.
func isAsWanted(m *view.Member, ec *v1beta2.EtcdCluster, step versions.Version) bool {
	return m.IsSettled() && !differs(m, ec, step)
}

// differs says whether a member's pod is not as it is to be.
func differs(m *view.Member, ec *v1beta2.EtcdCluster, step versions.Version) bool {
	if objects.ImageIn(m.Pod) != objects.ImageOf(ec, step.String()) || m.NeedsRestart || wasEdited(m) {
		return true
	}
	return objects.HasVolumes(ec) && m.Claim != nil && m.Pod.Annotations[annotation.Template] != objects.TemplateHash(ec)
}

// whyChanged says why a member's pod is not as it is to be, if its version is.
func whyChanged(m *view.Member, image string) string {
	switch {
	case m.NeedsRestart || objects.ImageIn(m.Pod) == objects.NoImage:
		return "it is restarted"
	case objects.ImageIn(m.Pod) != image || wasEdited(m):
		return "its image is to be " + image
	}
	return "spec.pod has changed"
}

// wasEdited says whether the image of a member does not do, and is not the one that it is to have:
// somebody has changed it in the pod. One that does is left as it is.
func wasEdited(m *view.Member) bool {
	return objects.ImageOfContainer(m.Pod) != objects.ImageIn(m.Pod) && (objects.LacksImage(m.Pod) || m.Follows && m.Version.String() != m.Pod.Annotations[annotation.Version])
}

// awaitChanged waits for the member that was changed last.
func awaitChanged(v *view.View, s *step.Step, updating string, to versions.Version) bool {
	switch {
	case updating != "":
		s.Rollout = "waiting for " + updating
	case v.Find(func(m *view.Member) bool { return !m.IsForeign() && m.Version != to }) == nil:
		return false
	}
	s.Soon()
	return true
}

// RepairImage gives a member that does not start the image that the others have.
func RepairImage(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, m *view.Member) {
	lowest := v.Lowest()
	if lowest.IsZero() || objects.ImageIn(m.Pod) == objects.ImageOf(ec, lowest.String()) {
		s.Later()
		return
	}
	s.Do(step.ImageChange(ec, m.Pod, "image", fmt.Sprintf("member %s takes the version of the others", m.PodName), lowest))
}
