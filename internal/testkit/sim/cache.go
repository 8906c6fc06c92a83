package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/fairlead/internal/kit/run"
)

// informer is the cache of a kind in one operator, and the watch that fills it. It is
// where the server was at some point in its log: the scheduler decides when it moves on.
type informer struct {
	kind       *Kind
	isMetadata bool
	label      string // the value of the label managed-by; empty for all objects
	keeps      string // the manager of fields whose objects keep theirs, if all objects are cached

	log      *store
	position int // in the log
	objects  map[types.NamespacedName]client.Object
	keys     []types.NamespacedName // sorted
	sources  []wakes

	isCut     bool // it begins anew with a list
	heldUntil time.Time
	noticed   int // up to where the scheduler has decided when it moves on
}

// wakes is a source of a controller, and the queue that it fills.
type wakes struct {
	run.Source
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// form is an object as the cache keeps it; nil if it does not.
func (i *informer) form(obj client.Object) client.Object {
	if i.label != "" && obj.GetLabels()[run.ManagedByLabel] != i.label {
		return nil
	}
	if i.isMetadata {
		partial := &metav1.PartialObjectMetadata{ObjectMeta: *metadataOf(obj)}
		partial.SetGroupVersionKind(i.kind.GroupVersionKind)
		partial.ManagedFields = nil
		return partial
	}
	isKept := func(f metav1.ManagedFieldsEntry) bool { return i.keeps != "" && f.Manager == i.keeps }
	if i.label == "" && len(obj.GetManagedFields()) > 0 && !slices.ContainsFunc(obj.GetManagedFields(), isKept) {
		bare := shallow(obj)
		bare.SetManagedFields(nil)
		return bare
	}
	return obj
}

func (i *informer) isBehind() bool { return i.isCut || i.position < len(i.log.log) }

// next takes over one change, or begins anew with a list.
func (i *informer) next() {
	if i.isCut {
		i.list()
		return
	}
	c := i.log.log[i.position]
	i.position++
	if c.Type == watch.Deleted {
		i.show(client.ObjectKeyFromObject(c.New), nil, c.New)
		return
	}
	i.show(client.ObjectKeyFromObject(c.New), i.form(c.New), c.New)
}

// list takes over all that the server has. What happened since the last change is not
// known then: an object that is gone is gone as it was last seen.
func (i *informer) list() {
	i.isCut, i.position = false, len(i.log.log)
	for _, key := range slices.Clone(i.keys) {
		if obj, ok := i.log.objects[key]; !ok || i.form(obj) == nil {
			i.show(key, nil, nil)
		}
	}
	for _, key := range i.log.keys {
		i.show(key, i.form(i.log.objects[key]), nil)
	}
}

// show puts an object into the cache, or takes it out if it is nil, and wakes whom it
// concerns. last is what was deleted, if that is known.
func (i *informer) show(key types.NamespacedName, obj, last client.Object) {
	old, had := i.objects[key]
	at, found := slices.BinarySearchFunc(i.keys, key, byName)
	ctx := context.Background()
	switch {
	case obj == nil && !had:
	case obj == nil:
		delete(i.objects, key)
		if found {
			i.keys = slices.Delete(i.keys, at, at+1)
		}
		gone := old
		if last != nil && i.label == "" && !i.isMetadata {
			gone = last
		}
		e := event.DeleteEvent{Object: gone, DeleteStateUnknown: last == nil}
		for _, s := range i.sources {
			if s.lets(func(p predicates) bool { return p.Delete(e) }) {
				s.Handler.Delete(ctx, e, s.queue)
			}
		}
	case !had:
		i.objects[key] = obj
		i.keys = slices.Insert(i.keys, at, key)
		e := event.CreateEvent{Object: obj}
		for _, s := range i.sources {
			if s.lets(func(p predicates) bool { return p.Create(e) }) {
				s.Handler.Create(ctx, e, s.queue)
			}
		}
	default:
		i.objects[key] = obj
		e := event.UpdateEvent{ObjectOld: old, ObjectNew: obj}
		for _, s := range i.sources {
			if s.lets(func(p predicates) bool { return p.Update(e) }) {
				s.Handler.Update(ctx, e, s.queue)
			}
		}
	}
}

type predicates interface {
	Create(event.CreateEvent) bool
	Update(event.UpdateEvent) bool
	Delete(event.DeleteEvent) bool
}

func (w wakes) lets(through func(predicates) bool) bool {
	for _, p := range w.Predicates {
		if !through(p) {
			return false
		}
	}
	return true
}

// cached reads from the caches of an operator. It implements client.Reader.
type cached struct{ *process }

var _ client.Reader = cached{}

func (c cached) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	i, err := c.informerOf(obj)
	if err != nil {
		return err
	}
	if !i.kind.Namespaced {
		key.Namespace = ""
	}
	stored, ok := i.objects[key]
	if !ok {
		return apierrors.NewNotFound(i.kind.groupResource(), key.Name)
	}
	if i.isMetadata {
		stored.(*metav1.PartialObjectMetadata).DeepCopyInto(obj.(*metav1.PartialObjectMetadata))
		return nil
	}
	if err := i.kind.copyInto(stored, obj); err != nil {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(i.kind.GroupVersionKind)
	return nil
}

func (c cached) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	i, err := c.informerOf(list)
	if err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	var found []client.Object
	for _, key := range i.keys {
		obj := i.objects[key]
		if options.Namespace != "" && key.Namespace != options.Namespace || options.LabelSelector != nil && !options.LabelSelector.Matches(labelSet(obj.GetLabels())) {
			continue
		}
		matches := true
		if options.FieldSelector != nil {
			for _, r := range options.FieldSelector.Requirements() {
				values := c.indexes[index{i.kind.GroupVersionKind, r.Field}]
				if values == nil {
					return fmt.Errorf("no index %s of %s", r.Field, i.kind.Kind)
				}
				matches = matches && slices.Contains(values(obj), r.Value)
			}
		}
		if matches {
			found = append(found, obj)
		}
	}
	return i.kind.fill(list, found, true)
}

// index is a field that is an index of the cache.
type index struct {
	schema.GroupVersionKind
	field string
}

// informerOf is the informer of a kind: a new one, if nothing has asked for it yet.
func (p *process) informerOf(obj runtime.Object) (*informer, error) {
	k, err := p.world.Server.API.kindOf(obj)
	if err != nil {
		return nil, err
	}
	isMetadata := false
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		isMetadata = true
	}
	for _, i := range p.informers {
		if i.kind == k && i.isMetadata == isMetadata {
			return i, nil
		}
	}
	i := &informer{kind: k, isMetadata: isMetadata, log: p.world.Server.store(k), objects: map[types.NamespacedName]client.Object{}}
	if !isMetadata && p.owns[k] {
		i.label = run.ManagedBy(p.world.story.Operator.Name)
	}
	if !isMetadata && p.among[k] {
		i.keeps = run.ManagedBy(p.world.story.Operator.Name)
	}
	i.list()
	p.informers = append(p.informers, i)
	return i, nil
}

func createEvent(obj client.Object) event.CreateEvent {
	return event.CreateEvent{Object: obj, IsInInitialList: true}
}
