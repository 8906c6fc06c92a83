package loop

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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

// Wake looks again at that time, unless it is to be sooner anyway.
func (p *Plan) Wake(at time.Time) {
	if p.WakeAt.IsZero() || at.Before(p.WakeAt) {
		p.WakeAt = at
	}
}

// Write is one write to the API server, or a call to another one, as a value.
type Write struct {
	// Verb is what is done, Object to what: as it was observed or, for Create,
	// as it is to be. Part names what Patch changes.
	Verb   Verb
	Object client.Object
	Part   string
	// Want is what Apply makes of the object.
	Want runtime.ApplyConfiguration
	// Data is what Patch sends, and Type its type. Subresource is for a patch of
	// one, such as "resize".
	Type        types.PatchType
	Data        []byte
	Subresource string
	// Why is said in the log, of a deletion for example.
	Why string
	// IfCurrent has the owner read from the API server before: the write is made
	// only if that is the one of the cache.
	IfCurrent bool
	// IfSame has Delete delete no other version than the one that was observed.
	IfSame bool
	// Named is for a child whose name says what is in it: one that is there, and
	// is the owner's, is as it should be but for its labels.
	Named bool
	// Private keeps the names of the fields that change out of the log.
	Private bool
	// Refused, if set, is called on a refusal: to return true is to decide anew.
	Refused func(error) bool
	// Otherwise is done if this is refused.
	Otherwise *Write
	// Done, if set, is called when it was done.
	Done func()
	// Do is what Call does. With [ErrNotNow] it has done nothing, which is no failure.
	Do func(ctx context.Context, c Caller) error
}

// ErrNotNow says that a Call changed nothing, because it was not time. It does not count.
var ErrNotNow = errors.New("not now")

// Verb is a kind of write.
type Verb string

// The verbs.
const (
	// Create makes an object that must not be there yet.
	Create Verb = "create"
	// Apply makes a child what is wanted, see apply.Children.
	Apply Verb = "apply"
	// Patch changes a part of an object.
	Patch Verb = "patch"
	// Delete deletes the very object, with its children in the background.
	Delete Verb = "delete"
	// Call is whatever takes several requests, or goes to another server.
	Call Verb = "call"
)

// Name is that of the write for logs, metrics and tests.
func (w Write) Name() string {
	name := string(w.Verb)
	if w.Object != nil {
		name += " " + KindOf(w.Object)
	}
	if w.Part != "" {
		name += "/" + w.Part
	}
	return strings.TrimSpace(name)
}

// String is the name with that of the object.
func (w Write) String() string { return strings.TrimSpace(w.Name() + " " + w.objectName()) }

// objectName is empty for a Call about nothing in particular.
func (w Write) objectName() string {
	if w.Object != nil && w.Object.GetName() != "" {
		return w.Object.GetName()
	}
	if want, ok := w.Want.(interface{ GetName() *string }); ok && want.GetName() != nil {
		return *want.GetName()
	}
	return ""
}

type nameKey struct{}

func withName(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, nameKey{}, name)
}

// NameOf is the name of the write that a request is part of; empty if none.
func NameOf(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
