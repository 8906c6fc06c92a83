package step

import (
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/kit/steps"
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

// Step is what a step does, and what status reports of it; the zero value is nothing. What is waited for is looked at
// again after WakeAfter, unless the same has been waited for for long.
type Step struct {
	steps.Step[v1beta2.EtcdClusterStatus]
	// Request is what a member is asked for after the writes; nil for nothing.
	Request *session.Request
	// Rollout is what is changed of the members: that is reported if nothing else is under way.
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
	return s.Step.Remember(&ec.Status)
}

// Soon looks again soon, because what is under way brings no event.
func (s *Step) Soon() { s.WakeIn(BusyWake) }

// Later looks again a little later.
func (s *Step) Later() { s.WakeIn(WaitingWake) }

// Add adds what the next step does.
func (s *Step) Add(next Step) {
	s.Step.Add(next.Step)
	if next.Request != nil {
		s.Request = next.Request
	}
	if next.Activity != "" {
		s.Activity, s.Doing = next.Activity, ""
	}
	s.Doing += next.Doing
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
