package loop

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Plan is what to do now, in order, and when to look again although no event
// comes. An operator's own plan embeds it.
type Plan struct {
	// Writes are sent one after the other; one that fails does not keep the
	// next from being sent.
	Writes []Write
	// Then are sent after them, if all of them were done.
	Then []Write
	// Again means to decide anew after the writes, on what they made.
	Again bool
	// Claim names the status write, where that is a write which others are to
	// wait for, such as the claim of a pod.
	Claim string
	// WakeAt is when to look again; the zero time is never.
	WakeAt time.Time
}

// Steps makes whatever embeds a Plan a [Planner].
func (p *Plan) Steps() *Plan { return p }

// Planner is an operator's own plan.
type Planner interface{ Steps() *Plan }

// Do adds writes.
func (p *Plan) Do(writes ...Write) { p.Writes = append(p.Writes, writes...) }

// Remove deletes an object that nothing needs any more. An operator whose cache has the object and not yet the edit
// of its owner that needs it must not: so the owner has to be current.
func (p *Plan) Remove(obj client.Object, why string) {
	p.Do(Delete{Object: obj, Why: why, IfCurrent: true})
}

// NotRequested is why most objects are removed.
const NotRequested = "the spec does not request it any more"

// Wake looks again at that time, unless it is to be sooner anyway.
func (p *Plan) Wake(at time.Time) {
	if p.WakeAt.IsZero() || at.Before(p.WakeAt) {
		p.WakeAt = at
	}
}
