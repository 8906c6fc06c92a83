package cluster

import (
	"strings"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/rollout"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/step"
)

// This file says how soon a cluster is looked at again. Of what members do there is no event.

// patiencePart is which part of the time that a cluster has waited for the same thing it is left alone, at
// least: what comes after that long is seen that little later, and a night without a quorum costs little.
const patiencePart = 8

// pace says when it is looked again: the longer the same has been waited for, the later.
func (p *plan) pace(before session.Waiting) {
	p.waiting = session.Waiting{What: p.outcome(), Since: p.view.Now}
	if p.waiting.What == before.What {
		p.waiting.Since = before.Since
	}
	if p.WakeAfter > 0 {
		waited := p.view.Now.Sub(p.waiting.Since)
		p.Wake(p.view.Now.Add(max(p.WakeAfter, min(waited/patiencePart, step.RestingWake))))
	}
	p.Wake(p.view.Now.Add(rollout.Rests(&p.view)))
}

// outcome is what was decided, in words.
func (p *plan) outcome() string {
	all := []string{p.Activity, p.Doing, p.Claim}
	for _, is := range []*status.Problem{p.Problem, p.UnderWay} {
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
	if p.Request != nil {
		all = append(all, string(p.Request.What), p.Request.Why)
	}
	return strings.Join(all, "\n")
}
