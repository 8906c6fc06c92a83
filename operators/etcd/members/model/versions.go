package model

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"example.com/fairlead/operators/etcd/members"
)

// version is that of a binary, such as 3.6.16.
type version struct {
	text  string
	minor int
}

func parse(text string) version {
	text = strings.TrimPrefix(text, "v")
	parts := strings.Split(text, ".")
	v := version{text: text}
	if len(parts) > 1 {
		v.minor, _ = strconv.Atoi(parts[1]) // 0 is older than all
	}
	return v
}

func minor(n int) string {
	if n == 0 {
		return ""
	}
	return "3." + strconv.Itoa(n)
}

// What etcd says of what its API v2 has written: when it starts with that, and when it gets an entry of the log.
const (
	v2InSnapshot = "detected disallowed custom content in v2store for stage --v2-deprecation=write-only"
	v2InLog      = "detected disallowed v2 WAL for stage --v2-deprecation=write-only"
)

// refusesV2 says whether a process ends for what the API v2 has written.
func (w *World) refusesV2(p *Process) bool {
	return p.version.minor >= 6 && p.config.Disk.head != nil && p.state().v2
}

// PutV2 writes a key by the API v2, which 3.5 is the last to have; DropV2 deletes it, and has all members take a snapshot of
// the log after that.
func (w *World) PutV2(address string) error { return w.setV2(address, true) }

// DropV2 is the other way round.
func (w *World) DropV2(address string) error { return w.setV2(address, false) }

func (w *World) setV2(address string, v2 bool) error {
	p, err := w.at(address)
	switch {
	case err != nil:
		return err
	case p.version.minor > 5:
		return errors.New("404 page not found")
	case p.leader == nil:
		return members.ErrNoLeader
	}
	next := p.leader.state().clone()
	next.v2 = v2
	if !w.propose(p.leader, next, 0) {
		return ErrNoAnswer
	}
	w.Tick()
	return nil
}

// lead does what a leader does by itself: it publishes members that have started, and changes the
// version of the cluster.
func (w *World) lead(l *Process, now time.Time) bool {
	s := l.state()
	lowest, highest, missing := l.version.minor, l.version.minor, len(s.members)
	for _, p := range w.processes {
		m := s.member(p.id())
		if m == nil || !l.reaches(p) || p.leader != l {
			continue
		}
		missing--
		lowest, highest = min(lowest, p.version.minor), max(highest, p.version.minor)
		url := "http://" + p.config.Address
		if p.config.Disk.head == l.config.Disk.head && (m.Name != p.config.Name || len(m.ClientURLs) == 0 || m.ClientURLs[0] != url) {
			next := s.clone()
			n := next.member(m.ID)
			n.Name, n.ClientURLs = p.config.Name, []string{url}
			if w.propose(l, next, 0) {
				return true
			}
		}
		if s.version >= 6 && p.version.minor >= 6 && p.config.Disk.head == l.config.Disk.head || s.version == 5 {
			p.config.Disk.storage = s.version
		}
	}
	if missing > 0 {
		return false
	}
	next := *s
	switch {
	case s.target != 0 && s.version != s.target:
		next.version = s.target
	case s.target != 0 && highest == s.target:
		if l.downgradeDone.IsZero() {
			l.downgradeDone = now.Add(downgradeCheck)
		}
		if now.Before(l.downgradeDone) {
			w.wake(l.downgradeDone)
			return false
		}
		l.downgradeDone = time.Time{}
		next.target = 0
	case s.target == 0 && s.version < lowest:
		next.version = lowest
	default:
		return false
	}
	return w.propose(l, &next, 0)
}
