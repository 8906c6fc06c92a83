package loop

import (
	"fmt"
	"maps"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Child is a kind of object that belongs to a T. It is watched, and its owner is
// woken; the cache holds only those with the operator's label.
type Child[T client.Object] struct {
	// Empty is an object of the Go type; an unstructured or metadata-only one
	// says its kind. Of a metadata-only kind the cache holds all objects, also
	// without the label.
	Empty client.Object
	// Name is that of the one child of this kind; nil if there may be several,
	// which Observe lists.
	Name func(T) string
	// Among says that the cache holds the objects of others, too: what they do concerns
	// the owner.
	Among bool
	// Requested is for a kind that not every cluster has: whether the object needs
	// it. Such a kind is watched once the API server serves it.
	Requested func(T) bool
}

func (c Child[T]) empty() client.Object { return c.Empty.DeepCopyObject().(client.Object) }

// Children are the children by kind: an empty object where there is none, and no
// entry where the cluster does not have the kind.
type Children map[string]client.Object

// The is the child of a Go type; empty if there is none.
func The[C client.Object](c Children) C {
	var zero C
	child, ok := c[KindOf(zero)].(C)
	if !ok {
		panic(fmt.Sprintf("%T is no child", zero)) // a mistake in the operator's list
	}
	return child
}

// With is a copy with another child in it.
func (c Children) With(child client.Object) Children {
	changed := maps.Clone(c)
	changed[KindOf(child)] = child
	return changed
}

// KindOf is the kind of an object, also of an empty one: the name of its Go type, or
// what an unstructured or metadata-only one says.
func KindOf(obj client.Object) string {
	if obj == nil {
		return ""
	}
	// A typed nil has no kind to say.
	name := fmt.Sprintf("%T", obj)
	name = name[strings.LastIndex(name, ".")+1:]
	if name == "Unstructured" || name == "PartialObjectMetadata" {
		return obj.GetObjectKind().GroupVersionKind().Kind
	}
	return name
}

// NoChildren are the children of an object that has none yet, for tests.
func NoChildren[T client.Object](kinds []Child[T]) Children {
	none := Children{}
	for _, child := range kinds {
		if child.Name != nil && child.Requested == nil {
			none[KindOf(child.Empty)] = child.empty()
		}
	}
	return none
}
