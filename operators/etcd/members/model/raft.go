package model

import (
	"slices"
	"time"

	"example.com/fairlead/operators/etcd/members"
)

// entry is one of a log, with the state after it. Logs share their entries.
type entry struct {
	prev        *entry
	index, term uint64
	write       Write // 0 if it is none
	state       *state
}

func (e *entry) with(term uint64, s *state) *entry {
	return &entry{prev: e, index: e.index + 1, term: term, state: s}
}

func (e *entry) isNewer(other *entry) bool {
	return e.term > other.term || e.term == other.term && e.index > other.index
}

// agreed is the last entry that is more than the beginning of a term: that is written by the leader
// before anybody has agreed to it, and dropped if nobody ever does.
func (e *entry) agreed() *entry {
	for e.prev != nil && e.write == 0 && e.state == e.prev.state {
		e = e.prev
	}
	return e
}

// contains says whether another entry is e or before it.
func (e *entry) contains(other *entry) bool {
	for ; e != nil && e.index >= other.index; e = e.prev {
		if e == other {
			return true
		}
	}
	return other.index == 0
}

// state is what the members of a cluster have agreed to. It is never changed, but replaced.
type state struct {
	cluster         members.ID
	members         []members.Member
	removed         []members.ID
	version, target int // minor versions; target is that of a downgrade
	alarms          []members.Alarm
	revision        int64
	compacted       int64
	dbInUse         int64
	root            string // root's password; empty if there is no such user
	isRoot, auth    bool   // whether root has its role, and authentication is on
	v2              bool   // whether the API v2 has written something
}

func (s *state) member(id members.ID) *members.Member {
	for i := range s.members {
		if s.members[i].ID == id {
			return &s.members[i]
		}
	}
	return nil
}

func (s *state) hasAlarm(kind string) bool {
	return slices.ContainsFunc(s.alarms, func(a members.Alarm) bool { return a.Type == kind })
}

func (s *state) voters() int {
	n := 0
	for i := range s.members {
		if !s.members[i].IsLearner {
			n++
		}
	}
	return n
}

func (p *Process) state() *state  { return p.config.Disk.head.state }
func (p *Process) id() members.ID { return p.config.Disk.member }
func (p *Process) isLearner() bool {
	m := p.state().member(p.id())
	return m != nil && m.IsLearner
}
func (p *Process) answersPeers() bool { return p.running && !p.paused && !p.isolated }
func (p *Process) leads() bool        { return p.leader == p }
func (p *Process) reaches(q *Process) bool {
	return p == q && p.running && !p.paused ||
		p.answersPeers() && q.answersPeers() && p.config.Disk.cluster == q.config.Disk.cluster
}

// voters counts the voters of p's list that p reaches and that pass a test.
func (w *World) voters(p *Process, test func(*Process) bool) int {
	n := 0
	s := p.state()
	for _, q := range w.processes {
		if !p.reaches(q) || !test(q) {
			continue
		}
		if m := s.member(q.id()); m != nil && !m.IsLearner {
			n++
		}
	}
	return n
}

func anyone(*Process) bool { return true }

func (w *World) hasQuorum(p *Process) bool { return w.voters(p, anyone) > p.state().voters()/2 }

// Tick lets happen what happens until now.
func (w *World) Tick() {
	for {
		w.next = time.Time{}
		if !w.step() {
			return
		}
	}
}

// step does the first thing that is due, if any.
func (w *World) step() bool {
	now := w.now()
	for _, p := range w.processes {
		if !p.running {
			continue
		}
		if w.defragment(p, now) {
			return true
		}
		if w.refusesV2(p) {
			w.end(p, v2InLog)
			return true
		}
		if l := p.leader; l != nil && (!l.leads() || !p.reaches(l) || p == l && !w.hasQuorum(p)) {
			p.leader, p.leaderless, p.matched, p.syncAt = nil, now, nil, time.Time{}
			return true
		}
	}
	for _, p := range w.processes {
		if p.running && p.leader == nil && w.follow(p) {
			return true
		}
	}
	if w.elect(now) {
		return true
	}
	for _, p := range w.processes {
		if p.running && p.leader != nil && (w.catchUp(p, now) || p.leads() && (w.lead(p, now) || w.compare(p, now))) {
			return true
		}
	}
	return false
}

func (w *World) follow(p *Process) bool {
	for _, l := range w.processes {
		if l == p || !l.leads() || !p.reaches(l) {
			continue
		}
		if l.state().member(p.id()) == nil {
			if slices.Contains(l.state().removed, p.id()) {
				w.end(p, "the member has been permanently removed from the cluster")
				return true
			}
			continue
		}
		if !p.config.Disk.head.isNewer(l.config.Disk.head) {
			p.leader, p.config.Disk.term = l, l.config.Disk.term
			return true
		}
	}
	return false
}

func (w *World) elect(now time.Time) bool {
	var best *Process
	for _, p := range w.processes {
		if !p.running || p.paused || p.leader != nil {
			continue
		}
		m := p.state().member(p.id())
		if m == nil || m.IsLearner || p.config.Disk.head.index == 0 {
			continue
		}
		mine := p.config.Disk.head
		if w.voters(p, func(q *Process) bool { return q.leader == nil && !q.config.Disk.head.isNewer(mine) }) <= p.state().voters()/2 {
			continue
		}
		if due := p.leaderless.Add(electionDelay); now.Before(due) {
			w.wake(due)
			continue
		}
		if best == nil || mine.isNewer(best.config.Disk.head) {
			best = p
		}
	}
	if best == nil {
		return false
	}
	w.crown(best)
	return true
}

// crown makes a leader, which starts its term with an entry of its own.
func (w *World) crown(p *Process) {
	d := p.config.Disk
	for _, q := range w.processes {
		if p.reaches(q) {
			d.term = max(d.term, q.config.Disk.term)
		}
	}
	d.term++
	old := d.head
	d.head = old.with(d.term, old.state)
	p.leader, p.matched = p, nil
	for _, q := range w.processes {
		if q != p && p.reaches(q) && p.state().member(q.id()) != nil {
			q.leader, q.config.Disk.term, q.syncAt = p, d.term, time.Time{}
			if q.config.Disk.head == old {
				q.config.Disk.head = d.head
				p.matched = append(p.matched, q.id())
			}
		}
	}
}

// handOver has a leader hand over to the first voter that has all that it has.
func (w *World) handOver(p *Process) {
	if !p.leads() {
		return
	}
	for _, q := range w.processes {
		if m := p.state().member(q.id()); q != p && p.reaches(q) && m != nil && !m.IsLearner && q.config.Disk.head == p.config.Disk.head {
			p.leader, p.leaderless = nil, w.now()
			w.crown(q)
			return
		}
	}
}

func (w *World) catchUp(p *Process, now time.Time) bool {
	l := p.leader
	if l == p || p.config.Disk.head == l.config.Disk.head {
		return false
	}
	if p.syncAt.IsZero() {
		delay := catchUpDelay
		switch {
		case p.slow:
			delay = slowDelay
		case p.config.Disk.head.index == 0:
			delay = firstSyncDelay
		}
		p.syncAt = now.Add(delay)
	}
	if now.Before(p.syncAt) {
		w.wake(p.syncAt)
		return false
	}
	p.syncAt = time.Time{}
	if !l.config.Disk.head.contains(p.config.Disk.head.agreed()) {
		w.end(p, "entry conflicts with committed entry")
		return true
	}
	if p.config.Disk.head.index == 0 { // it gets all data, as it is
		p.config.Disk.rot = l.config.Disk.rot
	}
	p.config.Disk.apply(l.config.Disk.head)
	if !slices.Contains(l.matched, p.id()) {
		l.matched = append(l.matched, p.id())
	}
	return true
}

// propose commits a change of the state if a quorum of voters that are in sync takes it.
func (w *World) propose(l *Process, next *state, write Write) bool {
	old := l.config.Disk.head
	if w.voters(l, func(q *Process) bool { return q.config.Disk.head == old && q.leader == l }) <= old.state.voters()/2 {
		return false
	}
	e := old.with(l.config.Disk.term, next)
	e.write = write
	for _, q := range w.processes {
		if q.leader == l && l.reaches(q) && q.config.Disk.head == old && q != l {
			q.config.Disk.apply(e)
		}
	}
	l.config.Disk.apply(e)
	return true
}
