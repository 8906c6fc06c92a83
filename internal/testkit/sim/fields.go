package sim

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fields keeps the managed fields of objects and does server-side apply, by the
// API server's own library. There is one for the process, safe for concurrent use.
//
// Results are memoized. They are the same whenever things happened: the library
// is given objects whose managed fields have ordinal numbers for times, and its
// answer says by them which entries are old, and which are of now.
type fields struct {
	scheme   *runtime.Scheme
	builtin  managedfields.TypeConverter
	deduced  managedfields.TypeConverter
	defined  map[schema.GroupVersionKind]*definition
	managers sync.Map // *managedfields.FieldManager by endpoint
	builtins sync.Map // whether a kind is Kubernetes' own
	applied  memo[applied]
	updated  memo[updated]
}

// endpoint is what the API server has a field manager for.
type endpoint struct {
	kind        schema.GroupVersionKind
	subresource string
}

// applied is the answer to a server-side apply.
type applied struct {
	// obj has no managed fields, and nothing of what only the server sets.
	obj     client.Object
	entries []metav1.ManagedFieldsEntry
	err     error
}

// updated is the answer to another write.
type updated struct {
	entries []metav1.ManagedFieldsEntry
	err     error
}

// newFields returns the field managers of the kinds of the scheme, and of all others.
func newFields(scheme *runtime.Scheme) *fields {
	return &fields{
		scheme:  scheme,
		builtin: applyconfigurations.NewTypeConverter(scheme),
		deduced: managedfields.NewDeducedTypeConverter(),
	}
}

// define tells the schemas of custom resources, before anything else is called.
// Those of other kinds are deduced: all lists are atomic.
func (f *fields) define(definitions map[schema.GroupVersionKind]*definition) { f.defined = definitions }

// apply is a server-side apply of patch to live, or to nothing if live is nil. It
// returns the object as it would be stored, with managed fields: of the Go type of
// live, or of the scheme, or unstructured if the scheme does not have the kind. It
// fails with a conflict, as the API server does, if others have a field and force
// is false. What only the server sets is that of live: a uid or resourceVersion in
// the patch is for the caller to compare.
func (f *fields) apply(live client.Object, patch *unstructured.Unstructured, manager string, force bool, now time.Time) (client.Object, error) {
	gvk := patch.GroupVersionKind()
	seen, err := f.view(live, gvk, ofLive)
	if err != nil {
		return nil, err
	}
	patch = bare(patch)

	h := newHash()
	h.text(manager)
	h.flag(force)
	h.text(gvk.String())
	h.flag(live == nil)
	h.text(reflect.TypeOf(seen).String())
	if err := h.object(seen); err != nil {
		return nil, err
	}
	if err := h.object(patch); err != nil {
		return nil, err
	}
	key := h.Sum64()
	answer, ok := f.applied.get(key)
	if !ok {
		answer = f.compute(live, seen, patch, manager, force)
		f.applied.put(key, answer)
	}
	if answer.err != nil {
		return nil, answer.err
	}

	result := answer.obj.DeepCopyObject().(client.Object)
	if live != nil {
		result.SetUID(live.GetUID())
		result.SetResourceVersion(live.GetResourceVersion())
		result.SetGeneration(live.GetGeneration())
		result.SetCreationTimestamp(live.GetCreationTimestamp())
		result.GetObjectKind().SetGroupVersionKind(live.GetObjectKind().GroupVersionKind()) // typed objects often have none
	}
	result.SetManagedFields(stamp(answer.entries, live, nil, now))
	return result, nil
}

// compute is apply without the memory, from the view of live.
func (f *fields) compute(live, seen client.Object, patch *unstructured.Unstructured, manager string, force bool) applied {
	gvk := patch.GroupVersionKind()
	m, err := f.manager(endpoint{kind: gvk})
	if err != nil {
		return applied{err: err}
	}
	merged, err := m.Apply(seen, patch, manager, force)
	if err != nil {
		// The library goes through the owners as a map gives them.
		if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
			slices.SortStableFunc(status.Status().Details.Causes, func(a, b metav1.StatusCause) int {
				return strings.Compare(a.Message, b.Message)
			})
		}
		return applied{err: err}
	}
	like := live
	if live == nil {
		if like, err = f.empty(gvk); err != nil {
			return applied{err: err}
		}
	}
	obj, err := convert(merged, like)
	if err != nil {
		return applied{err: err}
	}
	f.scheme.Default(obj)

	entries, before := obj.GetManagedFields(), seen.GetManagedFields()
	obj.SetManagedFields(nil)
	if live != nil && alike(entries, before) {
		// The library may have seen a change where there is none, such as an empty
		// list in place of none. The API server then undoes the new times.
		was := shallow(seen)
		was.SetManagedFields(nil)
		if equality.Semantic.DeepEqual(was, obj) {
			entries = before
		}
	}
	return applied{obj: obj, entries: entries}
}

// convert returns a copy of an object as an object of the type of another.
func convert(obj runtime.Object, like client.Object) (client.Object, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok && reflect.TypeOf(like) != reflect.TypeOf(u) {
		typed := reflect.New(reflect.TypeOf(like).Elem()).Interface().(client.Object)
		return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed)
	}
	return obj.DeepCopyObject().(client.Object), nil
}

// alike says whether managed fields are equal but for their times.
func alike(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.ManagedFieldsEntry) bool {
		a.Time, b.Time = nil, nil
		return reflect.DeepEqual(a, b)
	})
}

// update sets the managed fields of obj, which is about to be stored in place of
// live (nil if it is created), by a write that is not an apply. If obj comes with
// managed fields of its own, they count instead of those of live, as users can
// change them (but not by a subresource); none are those of live, and [{}] are
// removed.
func (f *fields) update(live, obj client.Object, manager, subresource string, now time.Time) error {
	gvk, err := apiutil.GVKForObject(obj, f.scheme)
	if err != nil {
		return err
	}
	before, err := f.view(live, gvk, ofLive)
	if err != nil {
		return err
	}
	after, err := f.view(obj, gvk, ofNew)
	if err != nil {
		return err
	}

	// What the endpoint cannot change need not be looked at.
	beside := "Status"
	if subresource == "status" {
		beside = "Spec"
	}
	if subresource == "" || subresource == "status" {
		blank(before, beside)
		blank(after, beside)
	}

	h := newHash()
	h.text(manager)
	h.text(subresource)
	h.text(gvk.String())
	h.flag(live == nil)
	h.flag(after.GetManagedFields() != nil) // an empty list removes them, no list does not
	if err := h.object(before); err != nil {
		return err
	}
	if err := h.object(after); err != nil {
		return err
	}
	key := h.Sum64()
	answer, ok := f.updated.get(key)
	if !ok {
		m, err := f.manager(endpoint{kind: gvk, subresource: subresource})
		if err != nil {
			return err
		}
		var result runtime.Object
		if result, answer.err = m.Update(before, after, manager); answer.err == nil {
			answer.entries = result.(client.Object).GetManagedFields()
		}
		f.updated.put(key, answer)
	}
	if answer.err != nil {
		return answer.err
	}
	obj.SetManagedFields(stamp(answer.entries, live, obj, now))
	return nil
}

// blank empties a field of a typed object, if there is one.
func blank(obj client.Object, name string) {
	if field := reflect.ValueOf(obj).Elem().FieldByName(name); field.IsValid() {
		field.SetZero()
	}
}

// manager returns the field manager of an endpoint.
func (f *fields) manager(e endpoint) (*managedfields.FieldManager, error) {
	if m, ok := f.managers.Load(e); ok {
		return m.(*managedfields.FieldManager), nil
	}
	builtin := f.isBuiltin(e.kind)
	converter := f.deduced
	if builtin {
		converter = f.builtin
	} else if d, ok := f.defined[e.kind]; ok {
		converter = d.types
	}
	m, err := managedfields.NewDefaultFieldManager(converter, oneVersion{}, f.scheme, f, e.kind, e.kind.GroupVersion(), e.subresource,
		map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(e.kind.GroupVersion().String()): reset(e.subresource, builtin)})
	if err != nil {
		return nil, err
	}
	f.managers.Store(e, m)
	return m, nil
}

// reset lets nobody own what a write to an endpoint cannot change: the status
// without its subresource, and by it everything else.
func reset(subresource string, builtin bool) fieldpath.Filter {
	resources := func(list, field string) *fieldpath.SetMatcher {
		return fieldpath.MakePrefixMatcherOrDie("spec", list, fieldpath.MatchAnyPathElement(), field)
	}
	switch {
	case subresource == "status" && builtin:
		return fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("spec")))
	case subresource == "status":
		return fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata")))
	case subresource == "resize":
		return fieldpath.NewIncludeMatcherFilter(
			resources("containers", "resources"), resources("containers", "resizePolicy"),
			resources("initContainers", "resources"), resources("initContainers", "resizePolicy"))
	default:
		return fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
	}
}

// isBuiltin says whether the schema of Kubernetes' own kinds has the kind.
func (f *fields) isBuiltin(kind schema.GroupVersionKind) bool {
	if known, ok := f.builtins.Load(kind); ok {
		return known.(bool)
	}
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind)
	_, err := f.builtin.ObjectToTyped(empty)
	f.builtins.Store(kind, err == nil)
	return err == nil
}

// New returns what the API server compares a created object to. That of a custom
// resource does not even have a spec.
func (f *fields) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if f.isBuiltin(kind) {
		return f.empty(kind)
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	return obj, nil
}

// empty returns an empty object of the type that objects of the kind have.
func (f *fields) empty(kind schema.GroupVersionKind) (client.Object, error) {
	if !f.scheme.Recognizes(kind) {
		return &unstructured.Unstructured{}, nil
	}
	obj, err := f.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	o, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%v is not a kind of objects", kind)
	}
	o.GetObjectKind().SetGroupVersionKind(kind)
	return o, nil
}
