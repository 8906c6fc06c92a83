package loop

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/metrics"
	"example.com/fairlead/internal/kit/status"
)

const (
	// attempts is how often a step is decided because something was otherwise
	// than the cache had it. The package comment names it.
	attempts = 5
	// conflictWait is when an object is looked at again after a conflict, unless the
	// event of the other write comes sooner.
	conflictWait = time.Second
	// yieldFor is how long another operator's status is left alone.
	yieldFor = time.Second
	// unreadable is how many reads in a row fail until status says so.
	unreadable = 2
)

// loop is the reconciler of a kind.
type loop[T client.Object, S any, P Planner] struct {
	kind     Kind[T, S, P]
	gvk      schema.GroupVersionKind
	client   client.Client // reads from the cache
	cache    client.Reader // the cache, also of unstructured objects
	executor *executor
	alarms   *alarms
	now      func() time.Time
	sees     map[string]bool // optional rights, as of the start

	mu     sync.Mutex
	unread map[client.ObjectKey]int // how often reading has failed
	last   map[client.ObjectKey]report
}

// report is the last status of an object that was stored.
type report struct {
	uid        types.UID
	generation int64
	version    string
	status     any
	// yields is until when another writer's status is left alone; zero if there is none.
	yields time.Time
}

// Reconcile takes an object one step on. It never waits: the result of what it starts is
// a watch event, and what only time brings is an alarm. There is an alarm after each write,
// too: what is made and gone while a watch is interrupted has no events at all.
func (l *loop[T, S, P]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := l.kind.Empty.DeepCopyObject().(T)
	if err := l.client.Get(ctx, req.NamespacedName, obj); apierrors.IsNotFound(err) {
		l.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		metrics.Known.Forget(l.gvk.GroupKind(), req.NamespacedName)
		return ctrl.Result{}, nil // owner references take the children along
	}
	obj.GetObjectKind().SetGroupVersionKind(l.gvk)
	before := obj.DeepCopyObject().(T)

	seen, plan, did, err := l.step(ctx, obj)
	if err != nil {
		return l.result(req, l.afterReading(ctx, before, obj, err))
	}
	if did.again || did.conflict {
		l.alarms.set(req.NamespacedName, l.now().Add(conflictWait))
		return ctrl.Result{}, nil
	}
	l.hasRead(req.NamespacedName)

	// Status is written on other failures too: that is when people read it.
	l.summarize(obj, seen, plan, did)
	if l.kind.Note != nil {
		l.kind.Note(obj, seen)
	}
	steps := plan.Steps()
	wake := Plan{WakeAt: steps.WakeAt}
	if !did.retryAt.IsZero() {
		wake.Wake(did.retryAt)
	}
	if did.awaits {
		wake.Wake(l.now().Add(apply.MemoryLasts))
	}
	l.alarms.set(req.NamespacedName, wake.WakeAt)
	return l.result(req, append(did.errs, l.report(ctx, before, obj, steps.Claim))...)
}

// step observes, decides and carries out, again if something was otherwise than the
// cache had it.
func (l *loop[T, S, P]) step(ctx context.Context, obj T) (seen S, plan P, did *round, err error) {
	if wait, late := l.executor.memory.Behind(l.gvk.Kind, client.ObjectKeyFromObject(obj), obj); late {
		return seen, plan, nil, &lateError{wait}
	}
	found := found{}
	for range attempts {
		reader := &Reader{Live: l.executor.live, Sees: l.sees, cache: l.cache, memory: l.executor.memory, found: found}
		if err = l.readChildren(ctx, reader, obj); err != nil {
			return seen, plan, nil, err
		}
		if seen, err = l.kind.Observe(ctx, reader, obj); err != nil {
			return seen, plan, nil, err
		}
		if plan, err = l.kind.Decide(obj, seen); err != nil {
			return seen, plan, nil, err
		}
		steps := plan.Steps()
		did = l.executor.carryOut(ctx, obj, l.isNew(obj), reader, steps)
		l.executor.held.forget(client.ObjectKeyFromObject(obj), slices.Concat(steps.Writes, steps.Then)...)
		if !did.again {
			break
		}
	}
	return seen, plan, did, nil
}

// readChildren reads the children that have a name.
func (l *loop[T, S, P]) readChildren(ctx context.Context, r *Reader, obj T) error {
	r.Children = Children{}
	for _, child := range l.kind.Children {
		if child.Name == nil {
			continue
		}
		kind, key := KindOf(child.Empty), client.ObjectKey{Namespace: obj.GetNamespace(), Name: child.Name(obj)}
		get := func(ctx context.Context) (client.Object, error) { return r.child(ctx, key, child.empty) }
		if o := l.executor.optional[kind]; o != nil {
			requested := child.Requested(obj)
			read, err := o.read(ctx, requested, get)
			switch {
			case err != nil:
				return err
			case read != nil:
				r.Children[kind] = read
			case requested:
				r.Missing = append(r.Missing, kind)
			}
			continue
		}
		read, err := get(ctx)
		if err != nil {
			return err
		}
		r.Children[kind] = read
	}
	return nil
}

// isNew says whether nothing was reported about the object's present generation.
func (l *loop[T, S, P]) isNew(obj T) bool {
	ready := meta.FindStatusCondition(*l.kind.Conditions(obj), status.Ready)
	return ready == nil || ready.ObservedGeneration != obj.GetGeneration()
}

// afterReading is for a step that failed before it wrote.
func (l *loop[T, S, P]) afterReading(ctx context.Context, before, obj T, failure error) error {
	var late *lateError
	key := client.ObjectKeyFromObject(obj)
	switch {
	case errors.As(failure, &late):
		l.alarms.set(key, l.now().Add(late.wait))
		return nil
	case apply.AnyOf(failure, apierrors.IsConflict), apply.AnyOf(failure, apierrors.IsNotFound):
		log.FromContext(ctx).Info("something has changed while it was read: looking again", "why", failure.Error())
		l.alarms.set(key, l.now().Add(conflictWait))
		return nil
	}
	l.mu.Lock()
	l.unread[key]++
	times := l.unread[key]
	l.mu.Unlock()
	if times < unreadable {
		return failure
	}
	conditions := status.Conditions{List: l.kind.Conditions(obj), Generation: obj.GetGeneration()}
	conditions.MarkUnknown("ReadFailed", "The operator cannot read what it has to know, and tries again: "+status.Shortened(failure.Error()))
	return errors.Join(failure, l.report(ctx, before, obj, ""))
}

func (l *loop[T, S, P]) hasRead(key client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unread, key)
}

// report stores the status if it differs, and announces it once it is stored.
func (l *loop[T, S, P]) report(ctx context.Context, before, obj T, claim string) error {
	l.stamp(before, obj)
	metrics.Known.Note(l.gvk.GroupKind(), client.ObjectKeyFromObject(obj), *l.kind.Conditions(obj), l.kind.Fine)
	if equality.Semantic.DeepEqual(statusOf(before), statusOf(obj)) {
		return nil
	}
	name := "status " + l.gvk.Kind
	if claim != "" {
		name += "/" + claim
	} else if until := l.yields(before); l.now().Before(until) {
		l.alarms.set(client.ObjectKeyFromObject(obj), until)
		return nil
	}
	if err := l.client.Status().Update(withName(ctx, name), obj); err != nil {
		l.executor.counts.write(name, resultOf(err))
		return err
	}
	l.executor.counts.write(name, asDone)
	l.executor.memory.Note(l.gvk.Kind, obj)
	l.mu.Lock()
	l.last[client.ObjectKeyFromObject(obj)] = report{uid: obj.GetUID(), generation: obj.GetGeneration(), version: obj.GetResourceVersion(), status: statusOf(obj)}
	l.mu.Unlock()
	l.announceOverruled(ctx, before, obj)
	if l.kind.Announce == nil {
		return nil
	}
	for _, e := range l.kind.Announce(ctx, before, obj) {
		emit(l.executor.events, obj, e)
	}
	return nil
}

// yields is until when a status is left as it is, because another operator wrote it over
// this one's: two that are at work at the same time, with caches that are not equally late,
// would otherwise take turns as fast as they can.
func (l *loop[T, S, P]) yields(now T) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(now)
	last, ok := l.last[key]
	switch {
	case !ok || last.version == now.GetResourceVersion(), last.uid != now.GetUID(),
		last.generation != now.GetGeneration(), equality.Semantic.DeepEqual(last.status, statusOf(now)):
		return time.Time{}
	case last.yields.IsZero():
		last.yields = l.now().Add(yieldFor)
		l.last[key] = last
	}
	return last.yields
}

// statusOf is the field Status of an object.
func statusOf(obj client.Object) any {
	return reflect.Indirect(reflect.ValueOf(obj)).FieldByName("Status").Interface()
}

// stamp sets the times of the transitions by the loop's clock: those who set conditions
// have none.
func (l *loop[T, S, P]) stamp(before, obj T) {
	old, conditions := *l.kind.Conditions(before), *l.kind.Conditions(obj)
	for i := range conditions {
		c := &conditions[i]
		if was := meta.FindStatusCondition(old, c.Type); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		} else {
			c.LastTransitionTime = metav1.NewTime(l.now().Round(0))
		}
	}
}

// result is for the queue. A conflict, or an object that is gone, is no error: there was
// another write, and its event follows. It was counted as that of the write.
func (l *loop[T, S, P]) result(req ctrl.Request, errs ...error) (ctrl.Result, error) {
	var failures []error
	for _, err := range errs {
		if apply.AnyOf(err, apierrors.IsConflict) || apply.AnyOf(err, apierrors.IsNotFound) {
			l.alarms.set(req.NamespacedName, l.now().Add(conflictWait))
		} else if err != nil {
			failures = append(failures, err)
		}
	}
	if len(failures) == 0 {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{Priority: l.kind.RetryPriority}, errors.Join(failures...)
}

// forget drops what is kept in memory about an object that is gone.
func (l *loop[T, S, P]) forget(key client.ObjectKey) {
	metrics.Known.Forget(l.gvk.GroupKind(), key)
	l.alarms.set(key, time.Time{})
	l.executor.held.forget(key)
	l.executor.overruled.forget(key)
	l.executor.memory.Forget(l.gvk.Kind, key)
	l.hasRead(key)
	l.mu.Lock()
	delete(l.last, key)
	l.mu.Unlock()
	if l.kind.Forget != nil {
		l.kind.Forget(key)
	}
}

func requestsFor(list client.ObjectList) []reconcile.Request {
	var requests []reconcile.Request
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(metav1.Object); ok {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()}})
		}
		return nil
	})
	return requests
}
