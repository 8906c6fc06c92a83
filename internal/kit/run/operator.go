// Package run turns operators into a process: one manager for one or several
// of them, with leader election, probes, metrics and logs, the same for all.
//
// Each kind starts when the API server serves it. A CRD that is not installed
// disables its kind only, with a log line, and the kind starts when the CRD
// appears.
package run

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/apply"
)

// ManagedByLabel is on every object that an operator creates, with the value
// <operator>-operator. Caches hold no other objects of the kinds that
// operators own.
const ManagedByLabel = apply.ManagedByLabel

// Operator is what there is to know of an operator in order to run it.
type Operator struct {
	// Name is the word for it on the command line, such as "at".
	Name string
	// AddToScheme registers the Go types of its kinds.
	AddToScheme func(*runtime.Scheme) error
	// Kinds are the kinds that it reconciles.
	Kinds []Kind
	// Busy, if set, says what is under way that an upgrade of the operator itself must
	// not cut short, and nothing otherwise: the Operator Lifecycle Manager then waits
	// with it. It is called often, and reads from the cache.
	Busy func(ctx context.Context, cached client.Reader) (string, error)
}

// Kind is one kind that an operator reconciles.
type Kind struct {
	// Object is an empty object of the kind.
	Object client.Object
	// Owns has one object of every kind of child that it watches, as far as every
	// cluster has it.
	Owns []client.Object
	// OwnsAmong has one object of every kind of child of which it watches those of others,
	// too: what they do concerns its own.
	OwnsAmong []client.Object
	// Watches has one object of every kind of which it watches all objects, also
	// those without its label. No operator beside it in a manager can have the kind in Owns:
	// the two share a cache.
	Watches []client.Object
	// New makes the controller of the kind. It is called once the API server serves
	// the kind.
	New func(Parts) (*Controller, error)
}

// ManagedBy is the value of ManagedByLabel, and the field manager, of the
// operator of that name.
func ManagedBy(operator string) string { return operator + "-operator" }
