package step

import (
	"fmt"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/session"
)

// How soon a cluster is looked at again. Of what members do there is no event.
const (
	// RestingWake is for one that is as it should be.
	RestingWake = 30 * time.Second
	// BusyWake is for one in which something is under way, and WaitingWake for one that waits for
	// something that may take long.
	BusyWake    = 250 * time.Millisecond
	WaitingWake = 2 * time.Second
)

// Step is what a step does, and what status reports of it; the zero value is nothing.
type Step struct {
	// Plan has the writes, and a claim: the name of status' write, which is made before the others where later steps
	// depend on what it remembers.
	loop.Plan
	// IsLast says that the steps after it have no turn.
	IsLast bool
	// Request is what a member is asked for after the writes; nil for nothing.
	Request *session.Request
	// Again is how soon to look again although no event comes, unless the same has been waited for for long.
	Again time.Duration
	// After is status after the step; nil if it is as before. It is stored before anything is done that depends on it.
	After *v1beta2.EtcdClusterStatus
	// Problem is what keeps the cluster from being as requested, and Rollout what is changed of the members: that is
	// reported if nothing else is under way.
	Problem *status.Problem
	Rollout string
	// Activity is what is under way: the type of a condition and, in words, what.
	Activity, Doing string
	// UnderWay reports the restore that is under way, and Only is the one member of a cluster that has
	// just been restored.
	UnderWay *status.Problem
	Only     *v1beta2.MemberStatus
	// Target is the version that members are being changed to; empty if none.
	Target string
}

// Last is the step as the last that is taken.
func (s Step) Last() Step {
	s.IsLast = true
	return s
}

// Remember is status after the step, to be changed. What it was before is in ec.
func (s *Step) Remember(ec *v1beta2.EtcdCluster) *v1beta2.EtcdClusterStatus {
	if s.After == nil {
		s.After = ec.Status.DeepCopy()
	}
	return s.After
}

// Report reports a problem that ends by itself, unless there is one already.
func (s *Step) Report(reason, format string, args ...any) {
	s.Note(status.Problem{Reason: reason, Retriable: true, Message: fmt.Sprintf(format, args...)})
}

// Stall reports what only the user can end.
func (s *Step) Stall(reason, format string, args ...any) {
	s.Note(status.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Note notes a problem, unless there is one already.
func (s *Step) Note(what status.Problem) {
	if s.Problem == nil {
		s.Problem = &what
	}
}

// Soon looks again soon, because what is under way brings no event.
func (s *Step) Soon() { s.lookAgain(BusyWake) }

// Later looks again a little later.
func (s *Step) Later() { s.lookAgain(WaitingWake) }

func (s *Step) lookAgain(after time.Duration) {
	if s.Again == 0 || after < s.Again {
		s.Again = after
	}
}

// Add adds what the next step does.
func (s *Step) Add(next Step) {
	s.Do(next.Writes...)
	if next.Claim != "" {
		s.Claim = next.Claim
	}
	if next.Request != nil {
		s.Request = next.Request
	}
	if next.Again > 0 {
		s.lookAgain(next.Again)
	}
	if !next.WakeAt.IsZero() {
		s.Wake(next.WakeAt)
	}
	if next.Activity != "" {
		s.Activity, s.Doing = next.Activity, ""
	}
	s.Doing += next.Doing
	if next.Problem != nil {
		s.Note(*next.Problem)
	}
	if next.Rollout != "" && s.Activity == "" {
		s.Report(reason.RollingOut, "Members are changed one after the other, %s", next.Rollout)
	}
	if next.UnderWay != nil {
		s.UnderWay = next.UnderWay
	}
	if next.Only != nil {
		s.Only = next.Only
	}
	if next.Target != "" {
		s.Target = next.Target
	}
}
