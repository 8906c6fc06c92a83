package membership

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// This file takes over a running etcd that something else runs, while it serves: spec.joinFrom. The cluster stays the
// same, with its ID, data and clients; its members become other ones.
//
//	everything is checked        joinchecks.go. Nothing is changed of the running etcd until all of it holds
//	status claims the cluster    its ID: from then on it is this EtcdCluster's, and the members of before are foreign ones
//	members are added            one at a time, as in any cluster that has too few (AddMissing, SettleLearner), with the
//	                             version that the others have
//	one of them leads            when spec.size of them vote; the leader hands over
//	a user stops the others      the operator says which is next: the highest ordinal of a StatefulSet. One whose pod is
//	                             gone is removed from the member list, if the rest has quorum; one that is no pod of
//	                             this Kubernetes cluster, the user removes
//	the last one is removed      then versions and pods are changed as the spec requests
//
// The operator does not remove a member that runs. Images of charts add a removed member again when its container
// starts, and its process ends when it is removed: so a member that is removed first comes back as a new voter without
// data. What is stopped first, and is removed then, has nothing left that could start. Where one comes back all the same,
// it is removed like the others. That one does not answer does not say that it was stopped: its node may start again.
//
// Until the first of them is removed, spec.joinFrom.goBack makes the operator's members leave again. Members of an
// EtcdCluster that is deleted by then go on without it, as by --cascade=orphan (elsewhere.go of package objects).

// Join claims a running etcd for a cluster that is to take it over, once all checks hold.
func Join(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if ec.Spec.JoinFrom == nil || ec.Status.ClusterID != "" || len(ec.Status.Founders) > 0 || len(v.Present) > 0 {
		return s
	}
	s.Later()
	if ec.Spec.JoinFrom.GoBack {
		s.Stall(reason.JoinUndone, "spec.joinFrom.goBack is true: nothing is joined")
		return s.Last()
	}
	claimed, problem := checkJoin(ec, v)
	if problem != nil {
		s.Note(*problem)
		return s.Last()
	}
	s.Remember(ec).ClusterID, s.Remember(ec).Join = claimed.String(), &v1beta2.Join{Phase: v1beta2.JoinJoining}
	s.Claim = "cluster"
	s.Report(reason.Joining, "Cluster %s, which is healthy, is joined", claimed)
	s.Soon()
	return s.Last()
}

// GoBack makes the members leave the etcd that they have joined, if the user wants that: the leader last, which hands
// over to one of those that were there before.
func GoBack(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if !objects.GoesBack(ec) {
		return s
	}
	if ec.Status.MemberBeingAdded != "" || ec.Status.Join.NextToStop != "" {
		s.Remember(ec).MemberBeingAdded, s.Remember(ec).Join.NextToStop = "", ""
	}
	if v.IsCurrent && v.Ours() == 0 && len(v.Present) == 0 {
		s.Stall(reason.JoinUndone, "The members of this EtcdCluster have left the etcd that they had joined, which is as it was before. The EtcdCluster can be deleted; to join again, set spec.joinFrom.goBack to false")
		return s.Last()
	}
	s.Activity, s.Doing = v1beta2.ConditionScaling, fmt.Sprintf("%d members leave the etcd that they have joined, as spec.joinFrom.goBack requests", v.Ours())
	s.Soon()
	if leaving := nextToLeave(v); leaving != nil && v.SurvivesWithout(leaving, true) {
		remove(ec, v, &s, leaving, "spec.joinFrom.goBack is true")
	}
	return s.Last()
}

// nextToLeave is the member of the operator's that leaves next: one that does not vote first, then one that does not
// follow the leader, and the leader last.
func nextToLeave(v *view.View) *view.Member {
	rank := func(m *view.Member) int {
		switch {
		case !m.IsVoter() || !m.IsStarted():
			return 0
		case !m.Follows:
			return 1
		case m.ID != v.Leader:
			return 2
		}
		return 3
	}
	var next *view.Member
	for _, m := range v.Members {
		if !m.IsForeign() && (next == nil || rank(m) < rank(next)) {
			next = m
		}
	}
	return next
}

// TakeOver makes one of the operator's members lead, and removes those of before that have been stopped. While there
// are any, nothing else is changed of the members.
func TakeOver(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if ec.Spec.JoinFrom == nil || !v.IsCurrent {
		return s
	}
	next := newestForeign(v)
	if next == nil {
		s.Remember(ec).Join = &v1beta2.Join{Phase: v1beta2.JoinComplete}
		return s
	}
	if ec.Status.Join == nil { // status was emptied
		s.Remember(ec).Join = &v1beta2.Join{Phase: v1beta2.JoinJoining}
		s.Claim = "cluster"
		s.Report(reason.Joining, "The etcd that was joined has other members: going on")
		s.Soon()
		return s.Last()
	}
	s.Later()
	isOurs := func(m *view.Member) bool { return !m.IsForeign() }
	voting := v.Count(func(m *view.Member) bool { return isOurs(m) && m.IsVoter() && m.Follows })
	switch phase := ec.Status.Join.Phase; {
	case voting < int(ec.Spec.Size) && phase != v1beta2.JoinReplacing && phase != v1beta2.JoinComplete:
		s.Report(reason.Joining, "%d of %d members vote in the etcd that they join%s", voting, ec.Spec.Size, missed(ec, v))
	case v.Leading() == nil:
		s.Report(reason.Joining, "%d members vote in the etcd that they have joined, and one of them is to lead", voting)
		s.Soon()
		s.Request = step.HandOverTo(ec, v, isOurs)
	case phase == v1beta2.JoinJoining:
		s.Remember(ec).Join = &v1beta2.Join{Phase: v1beta2.JoinJoined, NextToStop: next.ShownName(ec)}
		s.Claim = "cluster"
		s.Report(reason.Joining, "%s leads the etcd that was joined", v.Leading().PodName)
		s.Soon()
	default:
		replace(ec, v, &s, next)
	}
	return s.Last()
}

// missed is what to do about a member of before without which none is added.
func missed(ec *v1beta2.EtcdCluster, v *view.View) string {
	m := v.Find(func(m *view.Member) bool { return m.IsForeign() && !m.Follows })
	if m == nil {
		return ""
	}
	return fmt.Sprintf(". None is added while %s does not answer at one of spec.joinFrom.etcdEndpoints: start it, add its URL, or remove it with `etcdctl member remove %s`", m.ShownName(ec), m.ID)
}

// replace removes the member of before that is next, once it has been stopped: the others are a quorum, or AwaitQuorum
// would wait.
func replace(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, next *view.Member) {
	name, j := next.ShownName(ec), ec.Status.Join
	if j.NextToStop != name {
		s.Remember(ec).Join.NextToStop = name
	}
	others := v.Count((*view.Member).IsForeign) - 1
	back := ""
	if objects.MayGoBack(ec) {
		back = " To go back instead, set spec.joinFrom.goBack to true."
	}
	switch unlisted := unlisted(ec, v); {
	case unlisted != nil && objects.MayGoBack(ec):
		s.Note(*waits(reason.JoinEndpoints, "Member %s was added to the etcd that was joined, and is at none of spec.joinFrom.etcdEndpoints, so that it is not known whether it runs: add its URL, or remove it with `etcdctl member remove %s`. It advertises %s",
			unlisted.ShownName(ec), unlisted.ID, strings.Join(unlisted.ClientURLs, ", ")))
	case next.URL != "":
		s.Report(reason.Joining, "%s leads the etcd that was joined. Stop %s now: if a StatefulSet runs it, scale that to %d.%s", v.Leading().PodName, name, others, back)
	case !isEnded(ec, v, s, next):
		s.Report(reason.Joining, "%s does not answer, and may come back. It is removed from the member list once its pod is gone; if it is no pod, or not in this Kubernetes cluster, and you have stopped it for good, remove it with `etcdctl member remove %s`.%s", name, next.ID, back)
	case objects.MayGoBack(ec):
		s.Remember(ec).Join = &v1beta2.Join{Phase: v1beta2.JoinReplacing, NextToStop: name}
		s.Claim = "cluster"
		s.Report(reason.Joining, "%s is stopped: it is removed from the member list, and there is no way back from now on", name)
		s.Soon()
	default:
		s.Report(reason.Joining, "Removing %s from the member list; then %d of the members of before are left", name, others)
		remove(ec, v, s, next, "it is stopped, and this EtcdCluster has taken over from it")
		s.Soon()
	}
}

// unlisted is a member of before that is at none of the endpoints; nil if each that does not answer may be at one that
// does not either.
func unlisted(ec *v1beta2.EtcdCluster, v *view.View) *view.Member {
	silent := 0
	for url := range objects.Elsewhere(ec) {
		if v.Answers[url].Err != nil {
			silent++
		}
	}
	isSilent := func(m *view.Member) bool { return m.IsForeign() && m.URL == "" }
	if v.Count(isSilent) <= silent {
		return nil
	}
	return v.Find(isSilent)
}

// isEnded says whether a member of before that does not answer is known to have ended: the pod of its name is gone or, if
// no endpoint has that, those of all that do not answer. A pod that is evicted is gone for a moment, too, until its
// StatefulSet makes it again.
func isEnded(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, m *view.Member) bool {
	var silent, its []string
	for url, at := range objects.Elsewhere(ec) {
		if v.Answers[url].Err == nil {
			continue
		}
		silent = append(silent, url)
		if pod, is := objects.PodOfHost(at.ServerName); is && pod.Name == m.Name {
			its = append(its, url)
		}
	}
	if len(its) > 0 {
		silent = its
	}
	for _, url := range silent {
		since, isGone := v.Gone[url]
		if isGone && v.Now.Sub(since) < view.Lately {
			s.Soon()
		}
		if !isGone || v.Now.Sub(since) < view.Lately {
			return false
		}
	}
	return true
}

// newestForeign is the member that the operator does not run and that leaves next: one that has not started first, then
// that with the highest ordinal; nil if there is none.
func newestForeign(v *view.View) *view.Member {
	var newest *view.Member
	for _, m := range v.Members {
		if m.IsForeign() && (newest == nil || compareAge(m.Member, newest.Member) > 0) {
			newest = m
		}
	}
	return newest
}

// compareAge compares two members by their names: web-10 is newer than web-9.
func compareAge(a, b members.Member) int {
	if (a.Name == "") != (b.Name == "") {
		return cmp.Compare(len(b.Name), len(a.Name))
	}
	setA, ordinalA := ordinal(a.Name)
	setB, ordinalB := ordinal(b.Name)
	return cmp.Or(cmp.Compare(setA, setB), cmp.Compare(ordinalA, ordinalB), cmp.Compare(a.ID, b.ID))
}

// ordinal is the name of a pod's StatefulSet, and its number; the whole name if it has none.
func ordinal(name string) (string, int) {
	i := strings.LastIndex(name, "-")
	if n, err := strconv.Atoi(name[i+1:]); err == nil && i >= 0 {
		return name[:i], n
	}
	return name, 0
}
