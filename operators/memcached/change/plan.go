package change

import (
	"cmp"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/steps"
	"example.com/fairlead/operators/memcached/pool"
)

// Plan is what a step does and, once all are added up, what is to be done.
type Plan struct {
	steps.Step[v1alpha1.MemcachedStatus]

	// Requested is what the servers are to be, and Upgrade what status is to say about a
	// change of them: nil if there is none. They are of all steps together.
	Requested pool.Request
	Upgrade   *v1alpha1.UpgradeStatus
	// Serving is the identity that clients are to see.
	Serving v1alpha1.Identity
	// Waits is what a change waits for: for a restart that takes longer than it may, if
	// overdue.
	Waits   string
	Overdue bool
	// Note is what else a user is to know of servers that are ready.
	Note string
}

// Add adds what the next step does.
func (p *Plan) Add(next Plan) {
	p.Step.Add(next.Step)
	p.Serving = cmp.Or(next.Serving, p.Serving)
	p.Waits = cmp.Or(next.Waits, p.Waits)
	p.Overdue = p.Overdue || next.Overdue
	p.Note += next.Note
}
