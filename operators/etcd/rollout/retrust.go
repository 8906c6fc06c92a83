package rollout

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// This file is for Secrets of which all were replaced by those of another CA, at once. Etcd reads a
// certificate anew for each connection, and the CAs that it trusts only when it starts: members show
// the new certificates, and trust those of before. Then no member can talk to another, or to the
// operator, until they are restarted. In their pods that loses nothing: they come back with their data.
//
//	one is restarted          its connections of before are all that it has, so it is not missed
//	it runs for some seconds  so its pod has the Secrets, and etcd takes them
//	the others are restarted  all at once if it does not answer: one that has not found a quorum since it
//	                          started does not. If it has a leader, peers trust each other, and one at
//	                          a time is enough

const (
	// DistrustLasts is for how long nobody has named a leader when members are restarted to trust others:
	// by then whoever replaces Secrets has replaced all of them, and an election is over.
	DistrustLasts = 15 * time.Second
	// JoinsWithin is within what time a member that has started finds the others, if it can.
	JoinsWithin = 10 * time.Second
)

// Retrust restarts members that have started with other CAs than there are now, and that nobody can
// talk to any more. There is no quorum to wait for.
func Retrust(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step) {
	var cutOff []*view.Member
	renewed, proven, isLed := 0, 0, false
	for _, m := range v.Members {
		if m.IsForeign() || m.Pod == nil || objects.IsEnding(m.Pod) || errors.Is(m.Answer.Err, session.ErrNoAddress) {
			continue
		}
		if m.NeedsRestart {
			if isCutOff(ec, m) {
				cutOff = append(cutOff, m)
			}
			continue
		}
		runs := objects.ImageIn(m.Pod) != objects.NoImage && runsFor(m.Pod, v.Now) >= JoinsWithin
		switch {
		case m.Answer.Err == nil:
			renewed, proven = renewed+1, proven+1
			isLed = isLed || m.Answer.Status.Leader != 0
		case runs && errors.Is(m.Answer.Err, members.ErrNotTrusted):
			// It has started before its node had the Secrets: another one has to prove them.
		case runs:
			renewed, proven = renewed+1, proven+1
		default:
			renewed++
		}
	}
	if len(cutOff) == 0 {
		return
	}
	s.Report(reason.NotTrusted, "The members started with other CAs than the Secrets have now, and no quorum of them can be reached: "+
		"they are restarted in their pods, with their data, which is an outage of seconds")
	switch {
	case renewed > 0 && (proven == 0 || isLed && proven < renewed):
		return // until those that were restarted are back
	case !isLed && (v.Leaderless.IsZero() || v.Now.Before(v.Leaderless.Add(DistrustLasts))):
		return
	case renewed == 0 || isLed:
		cutOff = cutOff[:1]
	}
	for _, m := range cutOff {
		s.Do(step.Restarted(v, m, "to trust another CA: nobody can talk to it"))
	}
}

// isCutOff says whether a member runs, and either it and the operator do not trust each other, or it has
// no leader. The second says nothing where the CAs are the operator's own: it replaces them in steps.
func isCutOff(ec *v1beta2.EtcdCluster, m *view.Member) bool {
	if m.Pod == nil || objects.IsEnding(m.Pod) {
		return false
	}
	if m.Answer.Err != nil {
		return errors.Is(m.Answer.Err, members.ErrNotTrusted)
	}
	return ec.Spec.TLS != nil && ec.Spec.TLS.Static != nil && m.Answer.Status.Leader == 0
}

// runsFor is for how long the container has been running, as its node's clock has it; 0 if it does not.
func runsFor(pod *corev1.Pod, now time.Time) time.Duration {
	if running := pods.Status(pod, objects.ContainerName).State.Running; running != nil {
		return now.Sub(running.StartedAt.Time)
	}
	return 0
}
