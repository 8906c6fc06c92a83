// Package apply writes the objects that an operator owns, and never one that
// it does not own.
//
// An object is owned when its controller owner reference names the owner's UID, or when
// it has lost that reference and still carries the operator's other marks, see [Owns]. A
// name alone proves nothing: another object may have it, and a cache that holds only
// labelled objects does not show that one. So the first write is a POST, which cannot
// merge into anything, and AlreadyExists is followed by a live read.
package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConflictError says that the name of a child is taken by an object that the
// owner does not own. The object was not touched.
type ConflictError struct {
	Kind, Name string
	// Predecessor is true when the object belongs to a deleted owner of the
	// same kind and name, and so will be gone once it is garbage-collected.
	Predecessor bool
}

func (e *ConflictError) Error() string {
	if e.Predecessor {
		return fmt.Sprintf("%s %q still belongs to a deleted object of the same name and is about to be removed", e.Kind, e.Name)
	}
	return fmt.Sprintf("%s %q exists and is not owned by this object: delete or rename it", e.Kind, e.Name)
}

// BelongsToPredecessor says whether child is controlled by an object of the
// kind and name of owner that is not owner: one that was deleted, while the
// garbage collector has yet to follow.
func BelongsToPredecessor(child, owner client.Object) bool {
	ref := metav1.GetControllerOf(child)
	if ref == nil {
		return false
	}
	gvk := owner.GetObjectKind().GroupVersionKind()
	return ref.UID != owner.GetUID() && ref.Name == owner.GetName() &&
		ref.Kind == gvk.Kind && ref.APIVersion == gvk.GroupVersion().String()
}
