package model

import (
	"strconv"
	"strings"
	"time"
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
