package cluster

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/view"
)

// step is what a step does, and what status reports of it; the zero value is nothing.
type step struct {
	loop.Plan
	// isLast says that the steps after it have no turn.
	isLast bool
	// request is what a member is asked for after the writes; nil for nothing.
	request *session.Request
	// again is how soon to look again although no event comes, unless the same has been waited for for long.
	again time.Duration
	// after is status after the step; nil if it is as before. It is stored before anything is done that depends on it.
	after *v1beta2.EtcdClusterStatus
	// problem is what keeps the cluster from being as requested, and rollout what is changed of the members: that is
	// reported if nothing else is under way.
	problem *status.Problem
	rollout string
	// activity is what is under way: the type of a condition and, in words, what.
	activity, doing string
	// underWay reports the restore that is under way, and only is the one member of a cluster that has
	// just been restored.
	underWay *status.Problem
	only     *v1beta2.MemberStatus
	// target is the version that members are being changed to; empty if none.
	target string
}

// last is the step as the last that is taken.
func (s step) last() step {
	s.isLast = true
	return s
}

// remember is status after the step, to be changed. What it was before is in ec.
func (s *step) remember(ec *v1beta2.EtcdCluster) *v1beta2.EtcdClusterStatus {
	if s.after == nil {
		s.after = ec.Status.DeepCopy()
	}
	return s.after
}

// claim has status written before anything else is done: what it remembers now, later steps depend on.
func (s *step) claim(name string) { s.Claim = name }

// report reports a problem that ends by itself, unless there is one already.
func (s *step) report(reason, format string, args ...any) {
	s.note(status.Problem{Reason: reason, Retriable: true, Message: fmt.Sprintf(format, args...)})
}

// stall reports what only the user can end.
func (s *step) stall(reason, format string, args ...any) {
	s.note(status.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (s *step) note(what status.Problem) {
	if s.problem == nil {
		s.problem = &what
	}
}

// soon looks again soon, because what is under way brings no event.
func (s *step) soon() { s.lookAgain(busyWake) }

// later looks again a little later.
func (s *step) later() { s.lookAgain(waitingWake) }

func (s *step) lookAgain(after time.Duration) {
	if s.again == 0 || after < s.again {
		s.again = after
	}
}

// add adds what the next step does.
func (s *step) add(next step) {
	s.Do(next.Writes...)
	if next.Claim != "" {
		s.Claim = next.Claim
	}
	if next.request != nil {
		s.request = next.request
	}
	if next.again > 0 {
		s.lookAgain(next.again)
	}
	if !next.WakeAt.IsZero() {
		s.Wake(next.WakeAt)
	}
	if next.activity != "" {
		s.activity, s.doing = next.activity, ""
	}
	s.doing += next.doing
	if next.problem != nil {
		s.note(*next.problem)
	}
	if next.rollout != "" && s.activity == "" {
		s.report(reason.RollingOut, "Members are changed one after the other, %s", next.rollout)
	}
	if next.underWay != nil {
		s.underWay = next.underWay
	}
	if next.only != nil {
		s.only = next.only
	}
	if next.target != "" {
		s.target = next.target
	}
}

// removed deletes an object that nothing needs any more.
func removed(obj client.Object, why string) loop.Write {
	return loop.Delete{Object: obj, Why: why, IfCurrent: true}
}

// asked is a request to a member.
func asked(why string, r members.Request) *session.Request {
	return &session.Request{Request: r, Why: why}
}

// askedLeader is a request to the leader; nil if that does not answer.
func askedLeader(ec *v1beta2.EtcdCluster, v *view.View, why string, r members.Request) *session.Request {
	leader := v.Leading()
	if leader == nil {
		return nil
	}
	r.At = objects.EndpointOf(ec, leader.Pod)
	return asked(why, r)
}
