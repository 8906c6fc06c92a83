package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"example.com/fairlead/internal/kit/apply"
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
	// Announce, if set, is about a status that was stored: it logs what there is to log,
	// and returns the events.
	Announce func(ctx context.Context, before, after T) []Event

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
	// Handler replaces what wakes an object when it changes itself.
	Handler handler.EventHandler
	// RetryPriority is the place in the queue of what failed; nil for that which
	// it had.
	RetryPriority *int
	// Workers is how many objects are worked on at once. They mostly wait.
	Workers int
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
}

// Event is something to report about an object: Normal, if it has no type.
type Event struct {
	Type, Reason, Action, Note string
}

// workers is the default.
const workers = 32

// Declare makes of a kind what run wants to know. The functions of a kind may have
// a state, so build makes one for each manager; static needs no functions.
func Declare[T client.Object, S any, P Planner](static Kind[T, S, P], build func(ctrl.Manager) (Kind[T, S, P], error)) run.Kind {
	declared := run.Kind{
		Object: static.Empty,
		SetUp: func(mgr ctrl.Manager) error {
			kind, err := build(mgr)
			if err != nil {
				return err
			}
			return setUp(mgr, kind)
		},
	}
	for _, child := range static.Children {
		_, isMetadata := child.Empty.(*metav1.PartialObjectMetadata)
		switch {
		case isMetadata:
			declared.Watches = append(declared.Watches, child.Empty)
		case child.Requested == nil:
			declared.Owns = append(declared.Owns, child.Empty)
		}
	}
	for _, watch := range static.Watches {
		if watch.Labelled {
			declared.Owns = append(declared.Owns, watch.Object)
		} else {
			declared.Watches = append(declared.Watches, watch.Object)
		}
	}
	return declared
}

// setUp adds the controller of a kind to the manager.
func setUp[T client.Object, S any, P Planner](mgr ctrl.Manager, kind Kind[T, S, P]) error {
	gvk, err := apiutil.GVKForObject(kind.Empty, mgr.GetScheme())
	if err != nil {
		return err
	}
	wrote, err := countWrites(kind.Operator)
	if err != nil {
		return err
	}
	manager := run.ManagedBy(kind.Operator)
	l := &loop[T, S, P]{
		kind: kind, gvk: gvk, client: mgr.GetClient(), cache: mgr.GetCache(),
		alarms: newAlarms(time.Now), unread: map[client.ObjectKey]int{}, now: time.Now,
		executor: &executor{
			client: mgr.GetClient(), live: mgr.GetAPIReader(),
			children: apply.Children{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Manager: manager, Settled: kind.Settled},
			owns: func(owner, child client.Object) bool {
				if kind.Owns != nil {
					return kind.Owns(owner.(T), child)
				}
				return apply.Owns(manager, owner, child)
			},
			memory: apply.NewMemory(), held: newHeld(kind.Refusals.First, kind.Refusals.Longest),
			events: mgr.GetEventRecorder(manager), optional: map[string]*optional{},
			words: kind.Words, wrote: wrote, now: time.Now,
		},
	}
	for _, watch := range kind.Watches {
		if watch.Values == nil {
			continue
		}
		values := func(obj client.Object) []string { return watch.Values(obj.(T)) }
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), kind.Empty, watch.Index, values); err != nil {
			return err
		}
	}

	// The loop is complete before the first watch: it may be at work then.
	var c controller.Controller
	var owner handler.EventHandler
	if len(kind.Children) > 0 { // of a metadata-only kind it cannot be made
		owner = handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), kind.Empty, handler.OnlyControllerOwner())
	}
	watch := func(obj client.Object, wakes handler.EventHandler, predicates ...predicate.Predicate) error {
		return c.Watch(source.Kind(mgr.GetCache(), obj, wakes, append(predicates, l.executor.memory.Deletions(KindOf(obj)))...))
	}
	server, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	for _, child := range kind.Children {
		if child.Requested != nil {
			l.executor.optional[KindOf(child.Empty)] = &optional{
				object: child.Empty, server: server,
				watch:   func() error { return watch(child.empty(), owner) },
				unwatch: func(ctx context.Context) error { return mgr.GetCache().RemoveInformer(ctx, child.empty()) },
			}
		}
	}

	c, err = controller.New(gvk.Kind+"."+gvk.Group, mgr, controller.Options{
		Reconciler:              l,
		MaxConcurrentReconciles: max(kind.Workers, workers),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](kind.Retry.First, kind.Retry.Longest),
	})
	if err != nil {
		return err
	}
	own := kind.Handler
	if own == nil {
		own = &handler.EnqueueRequestForObject{}
	}
	if err := c.Watch(source.Kind(mgr.GetCache(), client.Object(kind.Empty), own)); err != nil {
		return err
	}
	if err := c.Watch(l.alarms); err != nil {
		return err
	}
	for _, child := range kind.Children {
		if child.Requested == nil {
			if err := watch(child.empty(), owner); err != nil {
				return err
			}
		}
	}
	for _, w := range kind.Watches {
		wakes := l.ofIndex(w, mgr.GetScheme())
		if w.Handler != nil {
			wakes = w.Handler(mgr.GetCache())
		}
		if err := watch(w.Object, wakes, w.If...); err != nil {
			return err
		}
	}
	for _, kind := range l.executor.optional {
		// What was requested earlier may have to be removed now.
		if _, err := kind.served(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

// ofIndex wakes the objects that an index has for what has changed.
func (l *loop[T, S, P]) ofIndex(w Watch[T], scheme *runtime.Scheme) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, changed client.Object) []reconcile.Request {
		list, err := scheme.New(l.gvk.GroupVersion().WithKind(l.gvk.Kind + "List"))
		if err != nil {
			return nil // no kind without a list is registered
		}
		objects, ok := list.(client.ObjectList)
		if !ok || l.cache.List(ctx, objects, client.InNamespace(changed.GetNamespace()), client.MatchingFields{w.Index: w.Value(changed)}) != nil {
			return nil // the cache is being filled: all are looked at anyway
		}
		return requestsFor(objects)
	})
}

// countWrites registers the metric of an operator. It may be called more than once
// in a process.
func countWrites(operator string) (func(kind string, verb Verb), error) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: fmt.Sprintf("fairlead_%s_child_writes_total", operator),
		Help: "Children that were created, or changed because of the spec or to repair them.",
	}, []string{"kind", "verb"})
	// The registry keeps the first of a process.
	var registered prometheus.AlreadyRegisteredError
	if err := metrics.Registry.Register(counter); errors.As(err, &registered) {
		counter = registered.ExistingCollector.(*prometheus.CounterVec)
	} else if err != nil {
		return nil, err
	}
	return func(kind string, verb Verb) { counter.WithLabelValues(kind, string(verb)).Inc() }, nil
}
