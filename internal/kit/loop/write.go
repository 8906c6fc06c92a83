package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Write is one write to the API server, or a call to another one, as a value: a [Create], [Apply], [Patch], [Delete] or
// [Call]. What these have in common:
//
//   - Object is the one that is written, as it was observed or, for Create, as it is to be.
//   - Part names what of an object changes.
//   - Why is said in the log, of a deletion for example.
//   - IfCurrent has the owner read from the API server before: the write is made only if that is the one of the cache.
//   - IfSame leaves alone any other version than the one that was observed. It is the very object in any case.
//   - Named is for a child whose name says what is in it: one that is there, and is the owner's, is as it should be but
//     for its labels.
type Write interface{ head() head }

// Create makes an object that must not be there yet.
type Create struct {
	Object           client.Object
	IfCurrent, Named bool
}

// Apply makes a child what is wanted, see apply.Children.
type Apply struct {
	Object           client.Object
	Want             runtime.ApplyConfiguration
	IfCurrent, Named bool
	// Private keeps the names of the fields that change out of the log.
	Private bool
	// Refused, if set, is called on a refusal: to return true is to decide anew.
	Refused func(error) bool
}

// Patch changes a part of an object. Custom resources do not know such patches.
type Patch struct {
	Object client.Object
	Part   string
	// Metadata and Spec are what changes, as a strategic merge patch has it.
	Metadata, Spec map[string]any
	// Subresource is that which is patched, such as "resize"; empty for the object.
	Subresource       string
	Why               string
	IfCurrent, IfSame bool
	// Otherwise, if set, is done if this is refused.
	Otherwise Write
	// Done, if set, is called when it was done.
	Done func()
}

// Delete deletes an object, with its children in the background.
type Delete struct {
	Object            client.Object
	Why               string
	IfCurrent, IfSame bool
}

// Call is whatever takes several requests, or goes to another server. It need not be about an object.
type Call struct {
	Object    client.Object
	Part      string
	IfCurrent bool
	// Do does it. With [ErrNotNow] it has done nothing, which is no failure.
	Do func(ctx context.Context, c Caller) error
}

// Caller is what a Call sends requests with.
type Caller struct {
	Client client.Client
	Live   client.Reader
	// Wrote has the loop wait for the cache to show this object.
	Wrote func(client.Object)
	// Emit reports an event about the owner.
	Emit func(Event)
}

// ErrNotNow says that a Call changed nothing, because it was not time. It does not count.
var ErrNotNow = errors.New("not now")

// head is what the loop has to know of any write.
type head struct {
	verb      string
	object    client.Object
	part      string
	ifCurrent bool
}

func (w Create) head() head { return head{"create", w.Object, "", w.IfCurrent} }
func (w Apply) head() head  { return head{"apply", w.Object, "", w.IfCurrent} }
func (w Patch) head() head  { return head{"patch", w.Object, w.Part, w.IfCurrent} }
func (w Delete) head() head { return head{"delete", w.Object, "", w.IfCurrent} }
func (w Call) head() head   { return head{"call", w.Object, w.Part, w.IfCurrent} }

// data is what is sent of a patch.
func (w Patch) data() ([]byte, error) {
	metadata := map[string]any{"uid": w.Object.GetUID()}
	if w.IfSame {
		metadata["resourceVersion"] = w.Object.GetResourceVersion()
	}
	maps.Copy(metadata, w.Metadata)
	return json.Marshal(struct {
		Metadata map[string]any `json:"metadata"`
		Spec     map[string]any `json:"spec,omitempty"`
	}{metadata, w.Spec})
}

// Name is that of a write for logs, metrics and tests.
func Name(w Write) string {
	h := w.head()
	name := strings.TrimSpace(h.verb + " " + KindOf(h.object))
	if h.part != "" {
		name += "/" + h.part
	}
	return name
}

// ObjectOf is the object of a write; nil for a Call about nothing in particular.
func ObjectOf(w Write) client.Object { return w.head().object }

// WriteError is a write that failed.
type WriteError struct {
	Write Write
	Err   error
}

func (f *WriteError) Error() string {
	h := f.Write.head()
	return cmp.Or(KindOf(h.object), h.part) + ": " + f.Err.Error()
}

func (f *WriteError) Unwrap() error { return f.Err }

// described is the name of a write with that of its object.
func described(w Write) string { return strings.TrimSpace(Name(w) + " " + objectName(w)) }

// objectName is empty for a Call about nothing in particular.
func objectName(w Write) string {
	if obj := ObjectOf(w); obj != nil && obj.GetName() != "" {
		return obj.GetName()
	}
	if a, ok := w.(Apply); ok {
		if want, ok := a.Want.(interface{ GetName() *string }); ok && want.GetName() != nil {
			return *want.GetName()
		}
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
