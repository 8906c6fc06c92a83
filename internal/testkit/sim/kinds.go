package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// API is what all simulated servers of a process have in common: the kinds, how they
// are validated, and how their fields are managed. It is safe for concurrent use.
type API struct {
	Scheme *runtime.Scheme

	definitions map[schema.GroupVersionKind]*definition
	fields      *fields

	mu     sync.RWMutex
	kinds  map[schema.GroupVersionKind]*Kind
	byType map[reflect.Type]*Kind
}

// NewAPI makes an API of the types of a scheme and the CRDs in some folders.
func NewAPI(scheme *runtime.Scheme, crds ...string) (*API, error) {
	definitions, err := readDefinitions(crds...)
	if err != nil {
		return nil, err
	}
	fields := newFields(scheme)
	fields.define(definitions)
	return &API{Scheme: scheme, definitions: definitions, fields: fields,
		kinds: map[schema.GroupVersionKind]*Kind{}, byType: map[reflect.Type]*Kind{}}, nil
}

// Kind is one kind of objects.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its name in a URL, such as "pods".
	Resource   string
	Namespaced bool

	definition *definition  // of a CRD
	goType     reflect.Type // nil if the objects are unstructured
	spec       []int        // the field, nil if there is none
	status     []int
}

// clusterScoped are the kinds without a namespace that stories use.
var clusterScoped = []string{"Namespace", "Node", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// kindOf is the kind of an object, of whatever Go type.
func (a *API) kindOf(obj runtime.Object) (*Kind, error) {
	isTyped := true
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		isTyped = false
	}
	if isTyped {
		a.mu.RLock()
		k := a.byType[reflect.TypeOf(obj)]
		a.mu.RUnlock()
		if k != nil {
			return k, nil
		}
	}
	gvk, err := apiutil.GVKForObject(obj, a.Scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	k, err := a.kind(gvk)
	if err == nil && isTyped {
		a.mu.Lock()
		a.byType[reflect.TypeOf(obj)] = k
		a.mu.Unlock()
	}
	return k, err
}

func (a *API) kind(gvk schema.GroupVersionKind) (*Kind, error) {
	a.mu.RLock()
	k := a.kinds[gvk]
	a.mu.RUnlock()
	if k != nil {
		return k, nil
	}
	if gvk.Kind == "" {
		return nil, fmt.Errorf("an object without a kind")
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	k = &Kind{GroupVersionKind: gvk, Resource: gvr.Resource, Namespaced: !slices.Contains(clusterScoped, gvk.Kind), definition: a.definitions[gvk]}
	if obj, err := a.Scheme.New(gvk); err == nil {
		k.goType = reflect.TypeOf(obj).Elem()
		if f, ok := k.goType.FieldByName("Spec"); ok {
			k.spec = f.Index
		}
		if f, ok := k.goType.FieldByName("Status"); ok {
			k.status = f.Index
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.kinds[gvk]; known != nil {
		return known, nil
	}
	a.kinds[gvk] = k
	return k, nil
}

func (k *Kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

func (k *Kind) empty() client.Object {
	if k.goType == nil {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k.GroupVersionKind)
		return u
	}
	return reflect.New(k.goType).Interface().(client.Object)
}

// received is an object as the server decodes it: with whole seconds, for example, and
// without what is empty.
func (k *Kind) received(obj client.Object) (client.Object, error) {
	into := k.empty()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if k.goType == nil {
			return u.DeepCopy(), nil
		}
		return into, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
	}
	if reflect.TypeOf(obj) != reflect.TypeOf(into) {
		return nil, fmt.Errorf("a %T is no %s", obj, k.Kind)
	}
	into = obj.DeepCopyObject().(client.Object)
	decoded(reflect.ValueOf(into).Elem())
	into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return into, nil
}

// asJSON is an object as a patch sees it, without the parts that the patch does not
// mention: restore puts those back.
func (k *Kind) asJSON(obj client.Object, patch []byte) (data []byte, restore func(patched client.Object), err error) {
	if k.goType == nil {
		data, err = json.Marshal(obj)
		return data, func(client.Object) {}, err
	}
	some := shallow(obj)
	some.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	mentions := func(field string) bool { return bytes.Contains(patch, []byte(field)) }
	nothing := k.empty()
	if !mentions("managedFields") {
		some.SetManagedFields(nil)
	}
	for field, index := range map[string][]int{"spec": k.spec, "status": k.status} {
		if !mentions(field) {
			k.takeField(some, nothing, index, field)
		}
	}
	data, err = json.Marshal(some)
	return data, func(patched client.Object) {
		if !mentions("managedFields") {
			patched.SetManagedFields(obj.GetManagedFields())
		}
		for field, index := range map[string][]int{"spec": k.spec, "status": k.status} {
			if !mentions(field) {
				k.takeField(patched, obj, index, field)
			}
		}
	}, err
}

// fromJSON is the object of a patched JSON.
func (k *Kind) fromJSON(data []byte) (client.Object, error) {
	into := k.empty()
	if err := json.Unmarshal(data, into); err != nil {
		return nil, err
	}
	if k.goType != nil {
		into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return into, nil
}

// part is the spec or the status of an object; nil if the kind has none.
func part(obj client.Object, index []int) any {
	if index == nil {
		return nil
	}
	return reflect.ValueOf(obj).Elem().FieldByIndex(index).Addr().Interface()
}

// takeField has an object share the spec or the status of another.
func (k *Kind) takeField(into, from client.Object, index []int, name string) {
	if k.goType == nil {
		u, other := into.(*unstructured.Unstructured), from.(*unstructured.Unstructured)
		if value, ok := other.Object[name]; ok {
			u.Object[name] = value
		} else {
			delete(u.Object, name)
		}
		return
	}
	if index != nil {
		reflect.ValueOf(into).Elem().FieldByIndex(index).Set(reflect.ValueOf(from).Elem().FieldByIndex(index))
	}
}

// copyInto makes out, of any Go type, what a stored object is.
func (k *Kind) copyInto(stored, out client.Object) error {
	switch out := out.(type) {
	case *unstructured.Unstructured:
		if u, ok := stored.(*unstructured.Unstructured); ok {
			out.Object = u.DeepCopy().Object
			return nil
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
		if err != nil {
			return err
		}
		out.Object = fields
		out.SetGroupVersionKind(k.GroupVersionKind)
		return nil
	case *metav1.PartialObjectMetadata:
		out.ObjectMeta = *metadataOf(stored)
		out.SetGroupVersionKind(k.GroupVersionKind)
		return nil
	}
	if k.goType == nil || reflect.TypeOf(out).Elem() != k.goType {
		return fmt.Errorf("a %T is no %s", out, k.Kind)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
	return nil
}

// metadataOf is a copy of the metadata of an object.
func metadataOf(obj client.Object) *metav1.ObjectMeta {
	if accessor, ok := obj.(metav1.ObjectMetaAccessor); ok {
		if m, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta); ok {
			return m.DeepCopy()
		}
	}
	return &metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
		Generation: obj.GetGeneration(), CreationTimestamp: obj.GetCreationTimestamp(), DeletionTimestamp: obj.GetDeletionTimestamp(),
		Labels: obj.GetLabels(), Annotations: obj.GetAnnotations(), OwnerReferences: obj.GetOwnerReferences(),
		Finalizers: obj.GetFinalizers(), ManagedFields: obj.GetManagedFields(),
	}
}
