package cluster

import (
	"slices"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/reason"
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
// (keepUp) or, if its first write raises the alarm again, before that is disarmed.
//
// If the history was not what filled the database, the alarm comes back with the next writes. Then there is
// nothing left to do: it is reported. It is tried again when there is another revision, or after some minutes.

// emptyAgain is when it is tried again to make room in a database that is full again without another write.
const emptyAgain = 10 * time.Minute

// makeSpace resolves a full database.
func (p *plan) makeSpace(ec *v1beta2.EtcdCluster) bool {
	leader := p.view.Leading()
	if leader == nil || !p.view.IsCurrent {
		return false
	}
	alarms, revision, full := p.view.Alarms(members.NoSpace), leader.Answer.Status.Revision, p.memory.FullDatabase
	if len(alarms) == 0 {
		p.noteRoom(revision)
		return false
	}
	if p.hasFailedLately() {
		return false
	}
	isFresh := full != nil && (full.ResolvedTime == nil ||
		full.CompactedRevision == revision && p.view.Now.Before(full.ResolvedTime.Add(emptyAgain)))
	next := p.nextToDefragment()
	switch {
	case !isFresh:
		p.memory.FullDatabase = nil
		p.maintain(leader, v1beta2.MaintenanceCompaction, revision, members.CompactPatience(revision, leader.Answer.Status.DBSize))
	case next != nil:
		p.defragment(next)
	case full.ResolvedTime != nil:
		p.Wake(full.ResolvedTime.Add(emptyAgain))
		p.stall(reason.NoSpace, "The database is full, and it is not its history that fills it: delete keys, or set a greater ETCD_QUOTA_BACKEND_BYTES in spec.pod.etcdEnv")
		return false
	default:
		p.askLeader(ec, "alarm disarmed: there is room in the database again", members.Request{What: members.Disarm, Alarm: alarms[0]})
		p.soon()
	}
	return true
}

// noteRoom notes that no alarm is raised any more, and forgets a full database of which nothing is left to do.
func (p *plan) noteRoom(revision int64) {
	full := p.memory.FullDatabase
	switch {
	case full == nil:
	case full.ResolvedTime == nil:
		full.ResolvedTime = timeOf(p.view.Now)
	case full.CompactedRevision == revision && p.view.Now.Before(full.ResolvedTime.Add(emptyAgain)):
		// The next write says whether there is room.
	case p.view.Find(func(m *view.Member) bool { return !p.isDefragmented(m) && (!m.Follows || p.missedDefragmentation(m)) }) == nil:
		p.memory.FullDatabase = nil
	}
}

// isDefragmented says whether a member was defragmented after the history was dropped, or is none of the operator's.
func (p *plan) isDefragmented(m *view.Member) bool {
	full := p.memory.FullDatabase
	return m.IsForeign() || full != nil && slices.Contains(full.DefragmentedMembers, m.PodName)
}

// nextToDefragment is the next member that is there, the leader last.
func (p *plan) nextToDefragment() *view.Member {
	var next *view.Member
	for _, m := range p.view.Members {
		if m.Follows && !p.isDefragmented(m) && (next == nil || next.ID == p.view.Leader) {
			next = m
		}
	}
	return next
}

// missedDefragmentation says that a member was not there when room was made, and has a file that is much greater
// than the leader's.
func (p *plan) missedDefragmentation(m *view.Member) bool {
	full, leader := p.memory.FullDatabase, p.view.Leading()
	return full != nil && full.ResolvedTime != nil && leader != nil && !p.isDefragmented(m) &&
		m.Answer.Status.DBSize >= worthFreeingPart*leader.Answer.Status.DBSize
}

const (
	// fillsAtMost is how many bytes are written to a database in a second, at most. One that is at rest is
	// looked at before it can be full, but not sooner than after shortestWake. An empty one of etcd's quota is
	// left alone for restingWake all the same. Faster disks fill it sooner (BenchmarkGreatDatabase of package
	// members): that is seen later.
	fillsAtMost  = 64 << 20
	shortestWake = 4 * time.Second
)

// rests is for how long a cluster at rest is left alone. Nothing says that a database is full: it is seen
// by asking.
func rests(v *view.View) time.Duration {
	rest := restingWake
	for _, m := range v.Members {
		if !m.HasAnswered() {
			continue
		}
		if quota := m.Quota(); quota > 0 {
			free := max(quota-m.Answer.Status.DBSize, 0)
			rest = min(rest, max(shortestWake, time.Duration(free/fillsAtMost)*time.Second))
		}
	}
	return rest
}
