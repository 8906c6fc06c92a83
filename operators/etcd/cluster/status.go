package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/kit/words"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/membership"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/rollout"
	"example.com/fairlead/operators/etcd/task"
	"example.com/fairlead/operators/etcd/view"
)

// summarize is the status of an EtcdCluster after a step. failure is what went wrong with the
// step's writes, if something did.
func summarize(ec *v1beta2.EtcdCluster, seen view.Observation, next *plan, failure error) v1beta2.EtcdClusterStatus {
	st := *next.memory.DeepCopy()
	if p := writeProblem(failure); st.Restoring != nil && p != nil && p.Reason == apply.ReasonRefused {
		st.Restoring.Problem = p.Message // for the EtcdRestore
	}

	st.ObservedGeneration = ec.Generation
	st.ControlPaused = ec.Spec.Paused
	st.Selector = k8slabels.SelectorFromSet(objects.Selector(ec)).String()
	st.ServiceName, st.ClientPort = objects.ClientServiceName(ec), members.ClientPort
	list, starting := memberList(ec, next)
	st.MemberList = list
	st.Size, st.ReadyMembers = int32(len(st.MemberList)), 0
	st.Members = v1beta2.MembersStatus{}
	for _, m := range st.MemberList {
		if m.Ready {
			st.ReadyMembers++
			st.Members.Ready = append(st.Members.Ready, m.Name)
		} else {
			st.Members.Unready = append(st.Members.Unready, m.Name)
		}
	}
	if leader := next.view.Leading(); leader != nil {
		st.Leader = leader.ShownName(ec)
	} else {
		st.Leader = ""
	}
	if lowest := next.view.Lowest(); !lowest.IsZero() {
		st.CurrentVersion = lowest.String()
	}
	st.TargetVersion, st.KeptVolumes = next.Target, keptVolumes(ec, &next.view)
	setConditions(ec, &st, seen, next, firstUnready(list, starting)+heldBack(ec, &next.view), failure)
	return st
}

// crowded says which members are on one node that could be on two, and what helps; empty if none are.
func crowded(ec *v1beta2.EtcdCluster, v *view.View) string {
	all := v.Crowded(ec)
	if all == nil {
		return ""
	}
	var names []string
	moves := all[0]
	for _, m := range all {
		names = append(names, m.PodName)
		if moves.ID == v.Leader {
			moves = m
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("; members %s share node %s, and to lose that is to lose the quorum: when another node has room, kubectl annotate pod %s %s=true",
		strings.Join(names, " and "), moves.Pod.Spec.NodeName, moves.PodName, annotation.Replace)
}

// keptVolumes are those that are kept because their data is not trusted.
func keptVolumes(ec *v1beta2.EtcdCluster, v *view.View) (all []v1beta2.KeptVolume) {
	for _, m := range v.Strays {
		if until, is := membership.KeptUntil(ec, m); is && m.Pod == nil && !objects.IsEnding(m.Claim) {
			all = append(all, v1beta2.KeptVolume{PersistentVolumeClaim: m.Claim.Name, Reason: m.Claim.Annotations[annotation.Suspect], Until: metav1.NewTime(until)})
		}
	}
	return all
}

// memberList is what is known of the members, in the order in which they were added, and of which of them nothing is
// known but that they are starting.
func memberList(ec *v1beta2.EtcdCluster, next *plan) (list []v1beta2.MemberStatus, starting map[string]bool) {
	if next.Only != nil {
		return []v1beta2.MemberStatus{*next.Only}, nil
	}
	starting = map[string]bool{}
	if next.memory.ClusterID == "" {
		// Those that are there are counted: after that a founder is let go, and never created again.
		for _, name := range next.memory.Founders {
			m := next.view.Of(name)
			is := v1beta2.MemberStatus{Name: name, DataUID: cmp.Or(m.Was.DataUID, m.Data)}
			if m.Pod != nil {
				is.Problem, starting[name] = m.PodProblem.Words, m.PodProblem.IsStarting
			}
			if is.DataUID != "" {
				list = append(list, is)
			}
		}
		return list, starting
	}
	order := map[string]int{}
	for i, m := range ec.Status.MemberList {
		order[m.Name] = i - len(ec.Status.MemberList) // before those that are new
	}
	for _, m := range next.view.Members {
		is := after(m, ec, next.view.IsKnown)
		starting[is.Name] = m.Problem.IsStarting
		list = append(list, is)
	}
	slices.SortStableFunc(list, func(a, b v1beta2.MemberStatus) int { return order[a.Name] - order[b.Name] })
	return list, starting
}

// after is what status says of a member after a step.
func after(m *view.Member, ec *v1beta2.EtcdCluster, isKnown bool) v1beta2.MemberStatus {
	was := m.Was
	is := v1beta2.MemberStatus{Name: m.ShownName(ec), ID: was.ID, DataUID: was.DataUID, Version: was.Version, DBSize: was.DBSize, Revision: was.Revision, Learner: m.IsLearner, Alarms: m.Alarms}
	if m.IsStarted() && m.ID != 0 {
		is.ID = m.ID.String()
	}
	if is.DataUID == "" || isKnown && !m.IsStarted() {
		is.DataUID = m.Data
	}
	is.Ready = (m.Follows || m.IsProbed() || m.MayFollow && was.Ready) && !m.IsLearner
	switch {
	case is.Ready:
	case m.IsLearner && m.Follows:
		is.Problem = "it is a learner"
	case m.IsLost() && m.Problem.Words != "":
		is.Problem = "its data is lost: " + m.Problem.Words
	default:
		is.Problem = m.Problem.Words
	}
	if !m.HasAnswered() {
		return is
	}
	is.Version, is.DBSize = m.Answer.Status.Version, rollout.Rounded(m.Answer.Status.DBSize)
	if !same(was, is) || m.Answer.Status.Revision > was.Revision+mostBehind {
		is.Revision = m.Answer.Status.Revision
	}
	return is
}

// mostBehind is how many revisions status may be behind. With a cluster that is lost while no operator remembers it, status
// is what a restored one begins above, by more than this.
const mostBehind = task.RevisionsAhead / 10

// same says whether what is known of a member is the same but for its revision, which changes
// with every write.
func same(was, is v1beta2.MemberStatus) bool {
	return was.ID == is.ID && was.Version == is.Version && was.Ready == is.Ready && was.Learner == is.Learner &&
		was.Problem == is.Problem && was.DBSize != nil && is.DBSize != nil && was.DBSize.Equal(*is.DBSize) && slices.Equal(was.Alarms, is.Alarms)
}

// setConditions sets the conditions, and the phase of the CoreOS operator's API.
func setConditions(ec *v1beta2.EtcdCluster, st *v1beta2.EtcdClusterStatus, seen view.Observation, next *plan, waiting string, failure error) {
	conditions := status.Conditions{List: &st.Conditions, Generation: ec.Generation}
	setAvailable(conditions, st, next)
	p := firstProblem(ec, next, st, waiting, failure)
	if p != nil {
		conditions.MarkProblem(p)
	} else {
		conditions.MarkReady(reason.Ready, fmt.Sprintf("All %d members serve", st.ReadyMembers)+crowded(ec, &next.view)+disruption.Sentence(seen.Budgets))
	}
	for activity, reason := range map[string]string{
		v1beta2.ConditionRecovering: reason.Recovering, v1beta2.ConditionScaling: reason.Scaling, v1beta2.ConditionUpgrading: reason.Upgrading,
	} {
		if next.Activity == activity {
			conditions.Set(activity, true, reason, words.Capitalized(next.Doing))
		} else {
			conditions.Set(activity, false, "No"+reason, "Nothing to do")
		}
	}
	slices.SortFunc(st.Conditions, byType)
	st.Phase, st.Reason = v1beta2.PhaseRunning, ""
	switch {
	case p != nil && !p.Retriable && !next.view.HasQuorum && next.view.Find((*view.Member).Refuses) == nil:
		st.Phase, st.Reason = v1beta2.PhaseFailed, p.Message
	case st.ClusterID == "":
		st.Phase = v1beta2.PhaseCreating
	}
}

// setAvailable says whether a quorum serves, and clients reach it.
func setAvailable(conditions status.Conditions, st *v1beta2.EtcdClusterStatus, next *plan) {
	wasAvailable := meta.IsStatusConditionTrue(st.Conditions, v1beta2.ConditionAvailable)
	switch {
	case (next.view.HasQuorum || next.view.MayHaveQuorum && wasAvailable) && next.view.IsReached():
		conditions.Set(v1beta2.ConditionAvailable, true, reason.Serving, "A quorum of members serves")
	case next.view.HasQuorum:
		conditions.Set(v1beta2.ConditionAvailable, false, reason.NotReached, fmt.Sprintf("Members serve, and Service %q leads to none of them: no pod of theirs is ready", st.ServiceName))
	case next.view.Find((*view.Member).IsProbed) != nil:
		conditions.Set(v1beta2.ConditionAvailable, true, reason.Serving, "Pods of members are ready, which needs a quorum; etcd tells the operator no more")
	case next.view.Find((*view.Member).Refuses) != nil:
		conditions.SetUnknown(v1beta2.ConditionAvailable, reason.Refused, "Etcd does not tell the operator, and no pod of a member is ready")
	case st.ClusterID == "":
		conditions.Set(v1beta2.ConditionAvailable, false, reason.Creating, "The cluster is being created")
	case st.QuorumLoss != nil:
		conditions.Set(v1beta2.ConditionAvailable, false, reason.QuorumLost, "So many members have lost their data that the others cannot go on")
	default:
		conditions.Set(v1beta2.ConditionAvailable, false, reason.NoQuorum, "No quorum of members serves")
	}
}

// firstProblem goes through what may be wrong, the worst first. The list is the specification of
// the condition Ready.
func firstProblem(ec *v1beta2.EtcdCluster, next *plan, st *v1beta2.EtcdClusterStatus, waiting string, failure error) *status.Problem {
	return status.First(
		func() *status.Problem { return paused(ec, st, waiting) },
		func() *status.Problem { return lossProblem(next) },
		func() *status.Problem { return full(ec, next) },
		func() *status.Problem { return writeProblem(failure) },
		func() *status.Problem { return next.UnderWay },
		func() *status.Problem { return next.Problem },
		func() *status.Problem { return voterDown(next, st, waiting) },
		func() *status.Problem { return activityProblem(next, waiting) },
		func() *status.Problem { return unavailable(st, waiting) },
		func() *status.Problem { return unreached(next, st) },
		func() *status.Problem { return doomed(next) },
		func() *status.Problem { return complaint(ec, next) },
	)
}

// lossProblem is what the plan reports, if that is a loss of quorum: nothing else matters then. Until a
// restore has switched, it is what ends the loss; after that, it is the restored cluster that is lost.
func lossProblem(next *plan) *status.Problem {
	r := next.memory.Restoring
	isAnswered := r != nil && r.Phase != v1beta2.RestoreCompleting
	if !isAnswered && next.Problem != nil && next.Problem.Reason == reason.QuorumLost {
		return next.Problem
	}
	return nil
}

// activityProblem reports what is under way, with what it waits for.
func activityProblem(next *plan, waiting string) *status.Problem {
	reasons := map[string]string{
		v1beta2.ConditionRecovering: reason.Recovering, v1beta2.ConditionScaling: reason.Scaling, v1beta2.ConditionUpgrading: reason.Upgrading,
	}
	if next.Activity == "" {
		return nil
	}
	message := words.Capitalized(next.Doing)
	if waiting != "" {
		message += "; " + waiting
	}
	return &status.Problem{Reason: reasons[next.Activity], Message: message, Retriable: true}
}

func unavailable(st *v1beta2.EtcdClusterStatus, waiting string) *status.Problem {
	if waiting == "" {
		return nil
	}
	return &status.Problem{Reason: reason.Unavailable, Message: fmt.Sprintf("%d of %d members serve: %s", st.ReadyMembers, st.Size, waiting), Retriable: true}
}

// unreached reports a member that serves, and that clients do not get to: the kubelet has not found its
// pod ready yet, or not any more.
func unreached(next *plan, st *v1beta2.EtcdClusterStatus) *status.Problem {
	m := next.view.Find(func(m *view.Member) bool { return m.Follows && m.IsVoter() && !m.IsForeign() && !m.IsReached })
	if m == nil {
		return nil
	}
	return &status.Problem{Reason: reason.NotReached, Message: fmt.Sprintf("Member %s serves, and Service %q does not lead to it: its pod is not ready", m.PodName, st.ServiceName), Retriable: true}
}

// firstUnready is what is wrong with members that do not serve, the worst first: with a voter, and with one that is to be
// one; with one that comes up by itself only if nothing is wrong with any other.
func firstUnready(list []v1beta2.MemberStatus, starting map[string]bool) string {
	voter, other, first := "", "", ""
	for _, m := range list {
		said := fmt.Sprintf("member %s: %s", m.Name, m.Problem)
		switch {
		case m.Ready || m.Problem == "":
		case starting[m.Name]:
			first = cmp.Or(first, said)
		case m.ID != "" && !m.Learner:
			voter = cmp.Or(voter, said)
		default:
			other = cmp.Or(other, said)
		}
	}
	if voter != "" && other != "" {
		return voter + "; " + other
	}
	return cmp.Or(voter, other, first)
}

// full reports a database that takes no writes. While a member leads that the operator does not run, it changes nothing.
func full(ec *v1beta2.EtcdCluster, next *plan) *status.Problem {
	raised := next.view.Alarms(members.NoSpace)
	switch {
	case len(raised) == 0:
		return nil
	case next.Problem != nil && next.Problem.Reason == reason.NoSpace:
		return next.Problem
	case ec.Spec.JoinFrom != nil && next.view.Leading() == nil:
		return &status.Problem{Reason: reason.NoSpace, Message: "The etcd that is joined has the alarm NOSPACE, and takes no writes: compact and defragment it, then `etcdctl alarm disarm`. To leave it first, set spec.joinFrom.goBack to true"}
	}
	return &status.Problem{Reason: reason.NoSpace, Retriable: true, Message: "The database is full, and takes no writes: its history is dropped and its file defragmented. If that does not help, delete keys, or set a greater ETCD_QUOTA_BACKEND_BYTES in spec.pod.etcdEnv"}
}
