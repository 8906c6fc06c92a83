package rollout

import (
	"fmt"
	"slices"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// This file decides on compactions and defragmentations, and waits for them; package session makes them.

// othersFirst is for how long maintenance that has failed leaves the members to everything else.
const othersFirst = 10 * time.Second

// AwaitMaintenance makes the request for the maintenance that status has, and waits until it is over.
func AwaitMaintenance(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	claim := ec.Status.Maintenance
	if claim == nil {
		return s
	}
	m := v.Of(claim.Member)
	is := v.Maintenance.ProgressOf(*claim, m.Pod, v.Now)
	switch is {
	case session.ToBegin:
		what := map[v1beta2.MaintenanceType]members.What{
			v1beta2.MaintenanceCompaction: members.Compact, v1beta2.MaintenanceDefragmentation: members.Defragment,
		}[claim.Type]
		s.Request = step.Asked(fmt.Sprintf("%s of member %s done", what, m.PodName), members.Request{
			What: what, At: objects.EndpointOf(ec, m.Pod), Revision: claim.Revision, Patience: claim.Deadline.Sub(v.Now),
		})
		s.Soon()
	case session.UnderWay:
		s.Later()
		if v.Now.Before(claim.StartTime.Add(session.BeginsWithin)) {
			s.Soon() // most are short
		}
	case session.Done, session.NotDone:
		s.Remember(ec).Maintenance = nil
		s.Claim = "maintenance"
		s.Soon()
		if is == session.Done {
			s.Remember(ec).FullDatabase = maintained(ec.Status.FullDatabase, claim)
		}
		return s
	}
	if full := ec.Status.FullDatabase; claim.Type == v1beta2.MaintenanceCompaction {
		s.Report(reason.NoSpace, "The database is full, and takes no writes: its history is being dropped")
	} else if full != nil && full.ResolvedTime == nil {
		s.Report(reason.NoSpace, "The database is full, and takes no writes: member %s is being defragmented", m.PodName)
	}
	return s.Last()
}

// maintain decides on maintenance. The request for it is made once status has it.
func maintain(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, what v1beta2.Maintenance, patience time.Duration) {
	what.StartTime, what.Deadline = *step.TimeOf(v.Now), *step.TimeOf(v.Now.Add(patience))
	s.Remember(ec).Maintenance = &what
	s.Claim = "maintenance"
	s.Soon()
}

// defragment decides on the defragmentation of a member.
func defragment(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, m *view.Member) {
	maintain(ec, v, s, v1beta2.Maintenance{Type: v1beta2.MaintenanceDefragmentation, Member: m.PodName}, members.DefragmentPatience(m.Answer.Status.DBSize))
}

// hasFailedLately says whether maintenance has failed some seconds ago: everything else has its turn until then.
func hasFailedLately(v *view.View) (until time.Time, is bool) {
	until = v.Maintenance.At.Add(othersFirst)
	return until, v.Maintenance.Err != nil && v.Now.Before(until)
}

// maintained is what status has of a full database when maintenance was done.
func maintained(full *v1beta2.FullDatabase, claim *v1beta2.Maintenance) *v1beta2.FullDatabase {
	if claim.Type == v1beta2.MaintenanceCompaction {
		return &v1beta2.FullDatabase{CompactedRevision: claim.Revision}
	}
	full = full.DeepCopy()
	if full != nil {
		full.ResolvedTime = nil // its alarm is to be disarmed, if it has one
		if !slices.Contains(full.DefragmentedMembers, claim.Member) {
			full.DefragmentedMembers = append(full.DefragmentedMembers, claim.Member)
		}
	}
	return full
}
