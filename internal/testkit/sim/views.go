package sim

import (
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// oneVersion is for kinds that have one version, so that there is nothing to
// convert. Managed fields of other versions are dropped, as those that an API
// server does not serve any more.
type oneVersion struct{ runtime.ObjectConvertor }

// ConvertToVersion returns the object.
func (oneVersion) ConvertToVersion(obj runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	if into, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{kind}); !ok || into != kind {
		return nil, runtime.NewNotRegisteredErrForTarget("sim", reflect.TypeOf(obj), target)
	}
	return obj, nil
}

// The origins of the entries of managed fields that the library is given, as years
// of their times, long before now.
const (
	ofLive = 1000
	ofNew  = 1100
)

// ordinals are the times of the first entries, by origin.
var ordinals = func() map[int][]metav1.Time {
	all := map[int][]metav1.Time{}
	for _, year := range []int{ofLive, ofNew} {
		for i := range 64 {
			all[year] = append(all[year], ordinal(year, i))
		}
	}
	return all
}()

// ordinal is the time that stands for that of the i-th entry.
func ordinal(year, i int) metav1.Time {
	return metav1.Date(year, 1, 1, 0, 0, i, 0, time.UTC)
}

// view returns what the library is to see of an object, an empty one for nil: a
// copy with its kind, with ordinals in managed fields, and without what only the
// server sets, which differs between histories and which nobody owns. The copy
// shares what it can with the object and must not be changed deeply.
func (f *fields) view(obj client.Object, gvk schema.GroupVersionKind, year int) (client.Object, error) {
	if obj == nil {
		empty, err := f.New(gvk)
		if err != nil {
			return nil, err
		}
		return empty.(client.Object), nil
	}
	v := shallow(obj)
	v.GetObjectKind().SetGroupVersionKind(gvk)
	if v.GetUID() != "" {
		v.SetUID(types.UID("set")) // the library knows by it what exists
	}
	v.SetResourceVersion("")
	v.SetGeneration(0)
	v.SetCreationTimestamp(metav1.Time{})
	entries := slices.Clone(v.GetManagedFields())
	for i := range entries {
		switch {
		case entries[i].Time == nil:
		case i < len(ordinals[year]):
			entries[i].Time = &ordinals[year][i]
		default:
			t := ordinal(year, i)
			entries[i].Time = &t
		}
	}
	if entries != nil {
		v.SetManagedFields(entries)
	}
	return v, nil
}

// shallow returns a copy of an object whose metadata can be set without harm to the
// object.
func shallow(obj client.Object) client.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		v := &unstructured.Unstructured{Object: make(map[string]any, len(u.Object))}
		for k, value := range u.Object {
			v.Object[k] = value
		}
		if metadata, ok := u.Object["metadata"].(map[string]any); ok {
			own := make(map[string]any, len(metadata))
			for k, value := range metadata {
				own[k] = value
			}
			v.Object["metadata"] = own
		}
		return v
	}
	v := reflect.New(reflect.TypeOf(obj).Elem())
	v.Elem().Set(reflect.ValueOf(obj).Elem())
	return v.Interface().(client.Object)
}

// bare returns a patch without what only the server sets.
func bare(patch *unstructured.Unstructured) *unstructured.Unstructured {
	v := shallow(patch).(*unstructured.Unstructured)
	if metadata, ok := v.Object["metadata"].(map[string]any); ok {
		for _, name := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"} {
			delete(metadata, name)
		}
	}
	return v
}

// stamp returns managed fields with times in place of ordinals, in their order.
func stamp(entries []metav1.ManagedFieldsEntry, live, obj client.Object, now time.Time) []metav1.ManagedFieldsEntry {
	if entries == nil {
		return nil
	}
	var before, given []metav1.ManagedFieldsEntry
	if live != nil {
		before = live.GetManagedFields()
	}
	if obj != nil {
		given = obj.GetManagedFields()
	}
	result := make([]metav1.ManagedFieldsEntry, len(entries))
	for i := range entries {
		result[i] = *entries[i].DeepCopy()
		t := result[i].Time
		if t == nil {
			continue
		}
		switch t := t.UTC(); t.Year() {
		case ofLive:
			result[i].Time = before[t.Sub(ordinals[ofLive][0].Time)/time.Second].Time.DeepCopy()
		case ofNew:
			result[i].Time = given[t.Sub(ordinals[ofNew][0].Time)/time.Second].Time.DeepCopy()
		default:
			result[i].Time = &metav1.Time{Time: now.Truncate(time.Second)}
		}
	}
	slices.SortFunc(result, order)
	return result
}

// order is the API server's order of managed fields.
func order(a, b metav1.ManagedFieldsEntry) int {
	seconds := func(t *metav1.Time) int64 {
		if t == nil {
			return 0
		}
		return t.Unix()
	}
	for _, c := range []int{
		strings.Compare(string(a.Operation), string(b.Operation)),
		int(seconds(a.Time) - seconds(b.Time)),
		strings.Compare(a.Manager, b.Manager),
		strings.Compare(a.APIVersion, b.APIVersion),
	} {
		if c != 0 {
			return c
		}
	}
	return strings.Compare(a.Subresource, b.Subresource)
}
