package loop

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/metrics"
	"example.com/fairlead/internal/kit/run"
)

// Kind is all that an operator says about one of its kinds: T is the Go type of its
// objects, S what is observed, P the operator's plan.
type Kind[T client.Object, S any, P Planner] struct {
	// Operator is the operator's name, such as "webserver".
	Operator string
	// Empty is an object without anything.
	Empty T
	// Children are the kinds of objects that belong to it.
	Children []Child[T]
	// Watches are the other kinds of which a change is news.
	Watches []Watch[T]

	// Writes are the names of all writes, see [Write.Name]; that of the status is
	// "status" and the kind, with the name of a claim. Tests use it: each must be made,
	// and cut, by some story, and the RBAC rules must allow them, and no more.
	Writes []string

	// Observe reads what the next step depends on, and changes nothing.
	Observe func(ctx context.Context, r *Reader, obj T) (S, error)
	// Decide is the next step. It is pure.
	Decide func(obj T, seen S) (P, error)
	// Summarize sets the status. It is pure otherwise.
	Summarize func(obj T, seen S, plan P, did Did)
	// Conditions are those of the status.
	Conditions func(T) *[]metav1.Condition
	// Fine are reasons of Ready that are no trouble although it is not True, see metrics.Objects.
	Fine []string
	// Announce, if set, is about a status that was stored: it logs what there is to log,
	// and returns the events.
	Announce func(ctx context.Context, before, after T) []Event

	// Note, if set, keeps what the metrics are to say of an object after a step.
	Note func(obj T, seen S)
	// Forget, if set, drops what the functions keep in memory about an object that
	// is gone.
	Forget func(types.NamespacedName)
	// Owns says whether a child is the owner's; nil for apply.Owns.
	Owns func(owner T, child client.Object) bool
	// Settled names fields of children of which the API server finds out the
	// value, see apply.Children.
	Settled []string
	// Words are what users call a field of a child, by its path in the child.
	Words map[string]string
	// Retry is how soon what failed is tried again, and Refusals what was refused.
	Retry, Refusals Backoff
	// AsksOthers says that Observe or a write waits for servers that may be silent: see [run.Controller].
	AsksOthers bool
	// Handler replaces what wakes an object when it changes itself.
	Handler handler.EventHandler
	// RetryPriority is the place in the queue of what failed; nil for that which
	// it had.
	RetryPriority *int
}

// Backoff is a wait that doubles.
type Backoff struct{ First, Longest time.Duration }

// Watch is a kind of which a change is news.
type Watch[T client.Object] struct {
	Object client.Object
	// Labelled says that the cache holds only those with the operator's label.
	Labelled bool
	// Wakes are the objects with a value of the index Index that is the one that
	// Value finds in what has changed; Values are those of an object.
	Index  string
	Value  func(changed client.Object) string
	Values func(T) []string
	// Handler, in place of all that, does it in some other way.
	Handler func(cached client.Reader) handler.EventHandler
	// If lets through what is news.
	If []predicate.Predicate
	// Without, if set, says that an install may leave out the right to see the kind, and what is not done then: whether
	// there is the right, [Reader.Sees] says.
	Without string
}

// Event is something to report about an object: Normal, if it has no type.
type Event struct {
	Type, Reason, Action, Note string
}

// Declare makes of a kind what run wants to know. The functions of a kind may have
// a state, so build makes one for each manager; static needs no functions.
func Declare[T client.Object, S any, P Planner](static Kind[T, S, P], build func(run.Parts) (Kind[T, S, P], error)) run.Kind {
	declared := run.Kind{
		Object: static.Empty,
		New: func(parts run.Parts) (*run.Controller, error) {
			kind, err := build(parts)
			if err != nil {
				return nil, err
			}
			return newController(parts, kind)
		},
	}
	for _, child := range static.Children {
		_, isMetadata := child.Empty.(*metav1.PartialObjectMetadata)
		switch {
		case isMetadata:
			declared.Watches = append(declared.Watches, child.Empty)
		case child.Among:
			declared.OwnsAmong = append(declared.OwnsAmong, child.Empty)
		case child.Requested == nil:
			declared.Owns = append(declared.Owns, child.Empty)
		}
	}
	for _, watch := range static.Watches {
		switch {
		case watch.Without != "":
		case watch.Labelled:
			declared.Owns = append(declared.Owns, watch.Object)
		case !slices.ContainsFunc(declared.OwnsAmong, func(o client.Object) bool { return KindOf(o) == KindOf(watch.Object) }):
			declared.Watches = append(declared.Watches, watch.Object)
		}
	}
	return declared
}

// newController makes the controller of a kind.
func newController[T client.Object, S any, P Planner](parts run.Parts, kind Kind[T, S, P]) (*run.Controller, error) {
	gvk, err := apiutil.GVKForObject(kind.Empty, parts.Scheme)
	if err != nil {
		return nil, err
	}
	if err := metrics.Register(metrics.Known, writes, repairs); err != nil {
		return nil, err
	}
	l := newLoop(parts, kind, gvk)
	for _, watch := range kind.Watches {
		if watch.Values == nil {
			continue
		}
		values := func(obj client.Object) []string { return watch.Values(obj.(T)) }
		if err := parts.Index(kind.Empty, watch.Index, values); err != nil {
			return nil, err
		}
	}

	source := func(obj client.Object, wakes handler.EventHandler, predicates ...predicate.Predicate) run.Source {
		return run.Source{Object: obj, Handler: wakes, Predicates: append(predicates, l.executor.memory.Deletions(KindOf(obj)))}
	}
	own := kind.Handler
	if own == nil {
		own = &handler.EnqueueRequestForObject{}
	}
	sources := []run.Source{{Object: kind.Empty, Handler: own}}
	var owner handler.EventHandler
	if len(kind.Children) > 0 { // of a metadata-only kind it cannot be made
		owner = handler.EnqueueRequestForOwner(parts.Scheme, parts.Mapper, kind.Empty, handler.OnlyControllerOwner())
	}
	var optionals []*optional
	for _, child := range kind.Children {
		if child.Requested == nil {
			sources = append(sources, source(child.empty(), owner))
			continue
		}
		o := &optional{
			object: child.Empty, list: parts.Served,
			watch:   func() error { return parts.Watch(source(child.empty(), owner)) },
			unwatch: func(ctx context.Context) error { return parts.Unwatch(ctx, child.empty()) },
		}
		l.executor.optional[KindOf(child.Empty)] = o
		optionals = append(optionals, o)
	}
	for _, w := range kind.Watches {
		wakes := l.ofIndex(w, parts.Scheme)
		if w.Handler != nil {
			wakes = w.Handler(parts.Cache)
		}
		// Asked before anything reconciles: who reads it later needs no lock.
		if w.Without != "" {
			sees, err := parts.Sees(context.Background(), w.Object, w.Without)
			if err != nil {
				return nil, err
			}
			if !sees {
				continue
			}
			l.sees[KindOf(w.Object)] = true
		}
		sources = append(sources, source(w.Object, wakes, w.If...))
	}
	return &run.Controller{
		Name:       gvk.Kind + "." + gvk.Group,
		Reconciler: l, Sources: sources, Alarms: l.alarms,
		First: kind.Retry.First, Longest: kind.Retry.Longest, AsksOthers: kind.AsksOthers,
		Started: func(ctx context.Context) error {
			for _, o := range optionals {
				// What was requested earlier may have to be removed now.
				if _, err := o.served(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// newLoop makes the reconciler of a kind.
func newLoop[T client.Object, S any, P Planner](parts run.Parts, kind Kind[T, S, P], gvk schema.GroupVersionKind) *loop[T, S, P] {
	manager := run.ManagedBy(kind.Operator)
	var children []string
	for _, child := range kind.Children {
		children = append(children, KindOf(child.Empty))
	}
	return &loop[T, S, P]{
		kind: kind, gvk: gvk, client: parts.Client, cache: parts.Cache,
		alarms: newAlarms(parts.Now), unread: map[client.ObjectKey]int{}, sees: map[string]bool{}, last: map[client.ObjectKey]report{}, now: parts.Now,
		executor: &executor{
			client: parts.Client, live: parts.Live,
			children: apply.Children{Client: parts.Client, Live: parts.Live, Manager: manager, Settled: kind.Settled, Sound: apply.NewSound()},
			owns: func(owner, child client.Object) bool {
				if kind.Owns != nil {
					return kind.Owns(owner.(T), child)
				}
				return apply.Owns(manager, owner, child)
			},
			memory: apply.NewMemory(parts.Now), held: newHeld(kind.Refusals.First, kind.Refusals.Longest), overruled: newOverruled(),
			events: parts.Events(manager), optional: map[string]*optional{},
			words: kind.Words, counts: newCounts(gvk.GroupKind(), kind.Writes, children), now: parts.Now,
		},
	}
}

// ofIndex wakes the objects that an index has for what has changed.
func (l *loop[T, S, P]) ofIndex(w Watch[T], scheme *runtime.Scheme) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, changed client.Object) []reconcile.Request {
		list, err := scheme.New(l.gvk.GroupVersion().WithKind(l.gvk.Kind + "List"))
		if err != nil {
			return nil // no kind without a list is registered
		}
		objects, ok := list.(client.ObjectList)
		if !ok {
			return nil
		}
		if err := l.cache.List(ctx, objects, client.InNamespace(changed.GetNamespace()), client.MatchingFields{w.Index: w.Value(changed)}); err != nil {
			// The cache is being filled: all are looked at anyway.
			log.FromContext(ctx).Info("cannot look up whom a change concerns", "index", w.Index, "changed", changed.GetName(), "why", err.Error())
			return nil
		}
		return requestsFor(objects)
	})
}
