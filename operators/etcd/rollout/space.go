package rollout

import (
	"slices"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// This file resolves a full database, while nobody can write: one step at a time, with the members that
// are there, and each in status when it is done.
//
//	the history is dropped
//	members are defragmented    one after the other, the leader last. How much of a file is in use a
//	                            member that takes no writes does not find out, so nothing is made of that
//	the alarms are disarmed     one after the other
//
// One that is down meanwhile comes back with a file that is as great as before. It is defragmented then
// (KeepUp) or, if its first write raises the alarm again, before that is disarmed.
//
// If the history was not what filled the database, the alarm comes back with the next writes. Then there is
// nothing left to do: it is reported. It is tried again when there is another revision, or after some minutes.

// EmptyAgain is when it is tried again to make room in a database that is full again without another write.
const EmptyAgain = 10 * time.Minute

// MakeSpace resolves a full database.
func MakeSpace(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	leader := v.Leading()
	if leader == nil || !v.IsCurrent {
		return s
	}
	alarms, revision, full := v.Alarms(members.NoSpace), leader.Answer.Status.Revision, ec.Status.FullDatabase
	if len(alarms) == 0 {
		if left := leftOf(ec, v, revision); left != full {
			s.Remember(ec).FullDatabase = left
		}
		return s
	}
	if until, is := hasFailedLately(v); is {
		s.Wake(until)
		return s
	}
	isFresh := full != nil && (full.ResolvedTime == nil ||
		full.CompactedRevision == revision && v.Now.Before(full.ResolvedTime.Add(EmptyAgain)))
	next := nextToDefragment(ec, v)
	switch {
	case !isFresh:
		s.Remember(ec).FullDatabase = nil
		maintain(ec, v, &s, v1beta2.Maintenance{Type: v1beta2.MaintenanceCompaction, Member: leader.PodName, Revision: revision},
			members.CompactPatience(revision, leader.Answer.Status.DBSize))
	case next != nil:
		defragment(ec, v, &s, next)
	case full.ResolvedTime != nil:
		s.Wake(full.ResolvedTime.Add(EmptyAgain))
		s.Stall(reason.NoSpace, "The database is full, and it is not its history that fills it: delete keys, or set a greater spec.quotaBackendBytes, or ETCD_QUOTA_BACKEND_BYTES in spec.pod.etcdEnv")
		return s
	default:
		s.Request = step.AskedLeader(ec, v, "alarm disarmed: there is room in the database again", members.Request{What: members.Disarm, Alarm: alarms[0]})
		s.Soon()
	}
	return s.Last()
}

// leftOf is what status has of a full database when no alarm is raised any more: nil if nothing of it is left to do.
func leftOf(ec *v1beta2.EtcdCluster, v *view.View, revision int64) *v1beta2.FullDatabase {
	full := ec.Status.FullDatabase
	switch {
	case full == nil:
	case full.ResolvedTime == nil:
		full = full.DeepCopy()
		full.ResolvedTime = step.TimeOf(v.Now)
	case full.CompactedRevision == revision && v.Now.Before(full.ResolvedTime.Add(EmptyAgain)):
		// The next write says whether there is room.
	case v.Find(func(m *view.Member) bool {
		return !isDefragmented(ec, m) && (!m.Follows || missedDefragmentation(ec, v, m))
	}) == nil:
		return nil
	}
	return full
}

// isDefragmented says whether a member was defragmented after the history was dropped, or is none of the operator's.
func isDefragmented(ec *v1beta2.EtcdCluster, m *view.Member) bool {
	full := ec.Status.FullDatabase
	return m.IsForeign() || full != nil && slices.Contains(full.DefragmentedMembers, m.PodName)
}

// nextToDefragment is the next member that is there, the leader last.
func nextToDefragment(ec *v1beta2.EtcdCluster, v *view.View) *view.Member {
	var next *view.Member
	for _, m := range v.Members {
		if m.Follows && !isDefragmented(ec, m) && (next == nil || next.ID == v.Leader) {
			next = m
		}
	}
	return next
}

// missedDefragmentation says that a member was not there when room was made, and has a file that is much greater
// than the leader's.
func missedDefragmentation(ec *v1beta2.EtcdCluster, v *view.View, m *view.Member) bool {
	full, leader := ec.Status.FullDatabase, v.Leading()
	return full != nil && full.ResolvedTime != nil && leader != nil && !isDefragmented(ec, m) &&
		m.Answer.Status.DBSize >= worthFreeingPart*leader.Answer.Status.DBSize
}

// tooSmallFor is a member whose database has more than the spec allows, and its pod not yet: the first member with the
// smaller quota would raise an alarm for all.
func tooSmallFor(ec *v1beta2.EtcdCluster, v *view.View) *view.Member {
	quota := ec.Spec.QuotaBackendBytes
	if quota == nil {
		return nil
	}
	return v.Find(func(m *view.Member) bool {
		return !m.IsForeign() && m.HasAnswered() && m.Quota() != quota.Value() && m.Answer.Status.DBSize >= quota.Value()
	})
}

const (
	// fillsAtMost is how many bytes are written to a database in a second, at most. One that is at rest is
	// looked at before it can be full, but not sooner than after ShortestWake. An empty one of etcd's quota is
	// left alone for step.RestingWake all the same. Faster disks fill it sooner (BenchmarkGreatDatabase of package
	// members): that is seen later.
	fillsAtMost = 64 << 20
	// ShortestWake is for how long one at rest is left alone at least.
	ShortestWake = 4 * time.Second
)

// Rests is for how long a cluster at rest is left alone. Nothing says that a database is full: it is seen
// by asking.
func Rests(v *view.View) time.Duration {
	rest := step.RestingWake
	for _, m := range v.Members {
		if !m.HasAnswered() {
			continue
		}
		if quota := m.Quota(); quota > 0 {
			free := max(quota-m.Answer.Status.DBSize, 0)
			rest = min(rest, max(ShortestWake, time.Duration(free/fillsAtMost)*time.Second))
		}
	}
	return rest
}
