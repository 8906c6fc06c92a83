package model

import (
	"slices"
	"strconv"

	"example.com/fairlead/operators/etcd/members"
)

func (s *state) clone() *state {
	next := *s
	next.members = slices.Clone(s.members)
	return &next
}

// connected counts the voters that p has been connected to for as long as etcd wants.
func (w *World) connected(p *Process) int {
	since := w.now().Add(-healthInterval)
	return w.voters(p, func(q *Process) bool { return q == p || p.up.Before(since) && q.up.Before(since) })
}

func (s *state) started(except members.ID) (started, all int) {
	for i := range s.members {
		if m := &s.members[i]; !m.IsLearner && m.ID != except {
			all++
			if m.Name != "" {
				started++
			}
		}
	}
	return started, all
}

// add follows mayAddMember and ValidateConfigurationChange.
func (w *World) add(p *Process, urls []string, learner bool) error {
	s := p.leader.state()
	started, all := s.started(0)
	if !learner && (started != 1 || all != 1) && started < (all+1)/2+1 {
		return members.ErrUnhealthy
	}
	if all > 1 && w.connected(p) < (all+1)/2+1 {
		return members.ErrUnhealthy
	}
	for i := range s.members {
		if slices.Equal(s.members[i].PeerURLs, urls) {
			return members.ErrMemberExists
		}
		if learner && s.members[i].IsLearner {
			return members.ErrTooManyLearners
		}
	}
	m := members.Member{ID: hash(urls[0] + strconv.FormatInt(w.now().Unix(), 10)), PeerURLs: urls, IsLearner: learner}
	next := s.clone()
	next.members = append(next.members, m)
	return w.commit(p, next)
}

// remove follows mayRemoveMember.
func (w *World) remove(p *Process, id members.ID) error {
	s := p.leader.state()
	m := s.member(id)
	if m == nil {
		return members.ErrMemberNotFound
	}
	if !m.IsLearner {
		started, all := s.started(id)
		if started < all/2+1 {
			return members.ErrUnhealthy
		}
		isUp := w.voters(p, func(q *Process) bool { return q.id() == id }) > 0
		if isUp && w.connected(p)-1 < 1+all/2 {
			return members.ErrUnhealthy
		}
	}
	next := s.clone()
	next.members = slices.DeleteFunc(next.members, func(m members.Member) bool { return m.ID == id })
	next.removed = append(slices.Clip(next.removed), id)
	l := p.leader
	if err := w.commit(p, next); err != nil {
		return err
	}
	if l.id() == id {
		w.handOver(l)
	}
	for _, q := range w.processes {
		if q.running && q.id() == id && (q.leader == l || q == l) {
			w.end(q, "the member has been permanently removed from the cluster")
		}
	}
	return nil
}

// rewrite makes a voter of a member, whatever it was: etcd's request to update a member has no learners.
func (w *World) rewrite(p *Process, id members.ID, urls []string) error {
	next := p.leader.state().clone()
	m := next.member(id)
	if m == nil {
		return members.ErrMemberNotFound
	}
	m.PeerURLs, m.IsLearner = urls, false
	return w.commit(p, next)
}

func (w *World) promote(p *Process, id members.ID) error {
	s := p.leader.state()
	switch m := s.member(id); {
	case m == nil:
		return members.ErrMemberNotFound
	case !m.IsLearner:
		return members.ErrNotLearner
	case !slices.Contains(p.leader.matched, id):
		return members.ErrLearnerNotReady
	}
	started, all := s.started(0)
	if started+1 < (all+1)/2+1 {
		return members.ErrUnhealthy
	}
	next := s.clone()
	next.member(id).IsLearner = false
	return w.commit(p, next)
}

func (w *World) moveLeader(p *Process, to members.ID) error {
	if !p.leads() {
		return members.ErrNotLeader
	}
	for _, q := range w.processes {
		m := p.state().member(q.id())
		if p.reaches(q) && q.id() == to && m != nil && !m.IsLearner && q.config.Disk.head == p.config.Disk.head {
			p.leader, p.leaderless = nil, w.now()
			w.crown(q)
			return nil
		}
	}
	return ErrNoAnswer
}

// commit proposes by way of the leader.
func (w *World) commit(p *Process, next *state) error {
	if !w.propose(p.leader, next, 0) {
		return ErrNoAnswer
	}
	return nil
}
