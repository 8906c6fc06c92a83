package membership

import (
	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// This file forms a cluster: the founders are named, created with a scheduling gate, counted,
// and let go. A founder starts with an empty disk and the list of all founders, and a majority
// of such founders is a cluster. So a founder that was lost must never be created again: with
// others that were, it would be a second, empty cluster under the name of the first. That
// status counts a founder before its gate is removed is what tells one that never ran from one
// that was lost.

// Form takes a cluster that has no ID yet one step on.
func Form(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if ec.Status.ClusterID != "" {
		return s
	}
	s.Activity, s.Doing = v1beta2.ConditionScaling, "the cluster is being created"
	s.Remember(ec).QuorumLoss = nil
	switch {
	case len(ec.Status.Founders) > 0:
	case len(v.Present) > 0:
		takeIn(ec, v, &s)
		return s.Last()
	default:
		nameFounders(ec, v, &s)
		return s.Last()
	}
	removeOthers(ec, v, &s)
	if id := formedBy(v, ec); id != 0 {
		s.Remember(ec).ClusterID = id.String()
		s.Claim = "cluster"
		return s.Last()
	}
	writes, lost := createFounders(ec, v)
	s.Do(writes...)
	if len(ec.Status.Founders)-len(lost) < objects.Majority(len(ec.Status.Founders)) {
		loss := reportLoss(ec, &s, lost, nil)
		if ec.Spec.AcceptDataLoss == loss.ID && !recoverFrom(ec, v, &s, loss) {
			startAnew(ec, v, &s, loss)
		}
		s.Do(startAll(ec, v)...)
		return s.Last()
	}
	s.Do(mend(ec, v)...)
	s.Soon()
	return s.Last()
}

// nameFounders names the founders. Nothing is created before they are stored.
func nameFounders(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step) {
	after := s.Remember(ec)
	after.Founders, after.MemberNamesUsed = step.NewNames(ec, v, int(ec.Spec.Size))
	s.Claim = "founders"
}

// createFounders creates those that are not there yet, and lets those go that status counts. It
// returns those that are lost: they were let go, or might have been, and their data is gone.
func createFounders(ec *v1beta2.EtcdCluster, v *view.View) (writes []loop.Write, lost []string) {
	for _, name := range ec.Status.Founders {
		m := v.Of(name)
		counted := m.Was.DataUID
		switch {
		case m.Pod != nil && pods.IsOver(m.Pod):
			writes = append(writes, step.Removed(m.Pod, "it has ended"))
		case m.Pod != nil && objects.IsEnding(m.Pod):
			// what becomes of it is seen when it is gone
		case counted != "" && counted != m.Data:
			lost = append(lost, name)
		case m.Pod != nil && pods.IsGated(m.Pod, objects.Gate) && counted != "":
			writes = append(writes, step.LetGo(m.Pod))
		case m.Pod == nil || m.Data == "":
			writes = append(writes, step.Created(ec, v, m, v.Wanted, step.FoundingOf(ec))...)
		}
	}
	return writes, lost
}

// formedBy is the ID of the cluster that a majority of the founders is; 0 if there is none yet.
func formedBy(v *view.View, ec *v1beta2.EtcdCluster) members.ID {
	following := map[members.ID]int{}
	for _, name := range ec.Status.Founders {
		a := v.Of(name).Answer
		if !a.HasList() || a.Status.Leader == 0 || len(a.List.Members) != len(ec.Status.Founders) {
			continue
		}
		id := a.Status.ClusterID
		if following[id]++; following[id] >= objects.Majority(len(ec.Status.Founders)) {
			return id
		}
	}
	return 0
}

// removeOthers removes what is left of an earlier try: pods and volumes of members that are no
// founders. Nothing of them is kept, because the user has accepted that, but what is only suspected to be lost.
func removeOthers(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step) {
	for _, m := range v.Present {
		if m.IsFounder {
			continue
		}
		if m.Pod != nil && !objects.IsEnding(m.Pod) {
			s.Do(step.Removed(m.Pod, "it is no member of the cluster"))
		}
		if m.Claim != nil {
			dropped(ec, v, m, "its member is no member of the cluster", s)
		}
	}
}

// startAnew forgets the cluster, whose data is lost, upon which another one is founded. The user
// has accepted that.
func startAnew(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, loss *v1beta2.QuorumLoss) {
	after := s.Remember(ec)
	after.ClusterID, after.MemberBeingAdded, after.MemberBeingUpdated, after.DataPreparedFor, after.VersionRefused = "", "", "", "", nil
	after.Recovered = &v1beta2.Recovered{ID: loss.ID, Time: step.TimeOf(v.Now)}
	after.QuorumLoss = nil
	nameFounders(ec, v, s)
	s.Claim = "anew"
}

// mend changes the image of founders that cannot start, and creates those anew that cannot be
// scheduled as they are: none of them has run.
func mend(ec *v1beta2.EtcdCluster, v *view.View) (writes []loop.Write) {
	image := objects.ImageOf(ec, v.Wanted.String())
	for _, name := range ec.Status.Founders {
		m := v.Of(name)
		switch pod := m.Pod; {
		case pod == nil || objects.IsEnding(pod) || m.HasAnswered():
		case objects.ImageIn(pod) != image:
			writes = append(writes, step.ImageChange(ec, pod, "image", "spec requests "+image, v.Wanted))
		case pod.Spec.NodeName == "" && !pods.IsGated(pod, objects.Gate) && pod.Annotations[annotation.Template] != objects.TemplateHash(ec):
			writes = append(writes, step.Removed(pod, "it could not be scheduled, and spec.pod has changed"))
		}
	}
	return writes
}
