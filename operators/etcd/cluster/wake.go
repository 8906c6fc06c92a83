package cluster

import (
	"strings"
	"time"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/session"
)

// This file says how soon a cluster is looked at again. Of what members do there is no event.

const (
	// restingWake is for one that is as it should be.
	restingWake = 30 * time.Second
	// busyWake is for one in which something is under way, and waitingWake for one that waits for
	// something that may take long.
	busyWake    = 250 * time.Millisecond
	waitingWake = 2 * time.Second
	// patiencePart is which part of the time that a cluster has waited for the same thing it is left alone, at
	// least: what comes after that long is seen that little later, and a night without a quorum costs little.
	patiencePart = 8
)

// pace says when it is looked again: the longer the same has been waited for, the later.
func (p *plan) pace(before session.Waiting) {
	p.waiting = session.Waiting{What: p.outcome(), Since: p.view.Now}
	if p.waiting.What == before.What {
		p.waiting.Since = before.Since
	}
	if p.again > 0 {
		waited := p.view.Now.Sub(p.waiting.Since)
		p.Wake(p.view.Now.Add(max(p.again, min(waited/patiencePart, restingWake))))
	}
	p.Wake(p.view.Now.Add(rests(&p.view)))
}

// outcome is what was decided, in words.
func (p *plan) outcome() string {
	all := []string{p.activity, p.doing, p.Claim}
	for _, is := range []*status.Problem{p.problem, p.underWay} {
		if is != nil {
			all = append(all, is.Reason, is.Message)
		}
	}
	for _, w := range p.Writes {
		all = append(all, loop.Name(w))
		if obj := loop.ObjectOf(w); obj != nil {
			all = append(all, obj.GetName())
		}
	}
	if p.request != nil {
		all = append(all, string(p.request.What), p.request.Why)
	}
	return strings.Join(all, "\n")
}
