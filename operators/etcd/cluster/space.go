package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
)

// This file resolves a full database, while nobody can write: one step at a time, with the members that
// are there.
//
//	the history is dropped
//	files are made smaller    one after the other, the leader's last. How much of a file is in use a
//	                          member that takes no writes does not find out, so nothing is made of that
//	the alarms are disarmed   one after the other
//
// One that is down meanwhile comes back with a file that is as great as before. It is made smaller then
// (keepUp) or, if its first write raises the alarm again, with all others once more.
//
// If the history was not what filled the database, the alarm comes back with the next writes. It is
// tried again when there is another revision, or after some minutes.

// space is how far the making of room in a full database is.
type space struct {
	// revision is up to which history was dropped, at when the last step was done, and isOver says that
	// it was the last one.
	revision int64
	at       time.Time
	isOver   bool
	// defragmented are the members whose files were made smaller since.
	defragmented []members.ID
	// failed is when a step failed.
	failed time.Time
}

const (
	// emptyAgain is when it is tried again to make room in a database that is full again without
	// another write, and stepsLast for how long what was not finished is gone on with.
	emptyAgain = 10 * time.Minute
	stepsLast  = 5 * time.Minute
	// othersFirst is for how long a step that fails leaves the members to everything else.
	othersFirst = 10 * time.Second
)

// with has another member whose file was made smaller.
func (s space) with(id members.ID) space {
	s.defragmented = append(slices.Clip(s.defragmented), id)
	return s
}

// makeSpace resolves a full database.
func (p *plan) makeSpace(ec *v1beta2.EtcdCluster) bool {
	alarms := p.alarms(members.NoSpace)
	if len(alarms) == 0 || !p.view.isCurrent {
		return false
	}
	s, revision := p.view.space, p.view.leading().answer.status.Revision
	if again := s.at.Add(emptyAgain); s.isOver && s.revision == revision && p.view.now.Before(again) {
		p.Wake(again)
		p.stall(reasonNoSpace, "The database is full, and it is not its history that fills it: delete keys, or set a greater ETCD_QUOTA_BACKEND_BYTES in spec.pod.etcdEnv")
		return false
	}
	if again := s.failed.Add(othersFirst); p.view.now.Before(again) {
		p.Wake(again)
		return false
	}
	p.soon()
	next := p.nextToDefragment(s)
	switch {
	case s.revision == 0 || s.isOver || !p.view.now.Before(s.at.Add(stepsLast)):
		p.askLeader(ec, fmt.Sprintf("history up to revision %d dropped: the database is full", revision),
			members.Request{What: members.Compact, Revision: revision}).done = space{revision: revision}
	case next != nil:
		p.ask(fmt.Sprintf("member %s defragmented: the database is full", next.name),
			members.Request{What: members.Defragment, At: endpointOf(ec, next.pod)}).done = s.with(next.ID)
	default:
		p.askLeader(ec, "alarm disarmed: there is room in the database again",
			members.Request{What: members.Disarm, Alarm: alarms[0]}).done.isOver = len(alarms) == 1
	}
	p.request.done.at, p.request.done.failed, p.request.failed.failed = p.view.now, time.Time{}, p.view.now
	return true
}

// nextToDefragment is the next member that is there, the leader last.
func (p *plan) nextToDefragment(s space) *member {
	var next *member
	for _, m := range p.view.members {
		if m.isForeign() || !m.follows || slices.Contains(s.defragmented, m.ID) {
			continue
		}
		if next == nil || next.ID == p.view.leader {
			next = m
		}
	}
	return next
}

// missedDefragmentation says that a member was not there when room was made, and has a file that is much greater
// than the leader's.
func (p *plan) missedDefragmentation(m *member) bool {
	leader := p.view.leading()
	return p.view.space.isOver && leader != nil && !slices.Contains(p.view.space.defragmented, m.ID) &&
		m.answer.status.DBSize >= worthFreeingPart*leader.answer.status.DBSize
}

const (
	// defaultQuota is etcd's.
	defaultQuota = 2 << 30
	// fillsAtMost is how many bytes are written to a database in a second, at most. One that is at rest is
	// looked at before it can be full, but not sooner than after shortestWake. An empty one of etcd's quota is
	// left alone for restingWake all the same. Faster disks fill it sooner (BenchmarkGreatDatabase of package
	// members): that is seen later.
	fillsAtMost  = 64 << 20
	shortestWake = 4 * time.Second
)

// rests is for how long a cluster at rest is left alone. Nothing says that a database is full: it is seen
// by asking.
func (v *view) rests() time.Duration {
	rest := restingWake
	for _, m := range v.members {
		if !m.hasAnswered() {
			continue
		}
		if quota := m.quota(); quota > 0 {
			free := max(quota-m.answer.status.DBSize, 0)
			rest = min(rest, max(shortestWake, time.Duration(free/fillsAtMost)*time.Second))
		}
	}
	return rest
}

// quota is how many bytes a member's database may have; negative if any. Before 3.6 etcd does not say.
func (m *member) quota() int64 {
	quota := m.answer.status.Quota
	if quota == 0 && m.pod != nil {
		quota, _ = strconv.ParseInt(environment(m.pod, "ETCD_QUOTA_BACKEND_BYTES"), 10, 64) // 0 if it is none
	}
	if quota == 0 {
		return defaultQuota
	}
	return quota
}
