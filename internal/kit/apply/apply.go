// Package apply writes the objects that an operator owns, and never one that
// it does not own.
//
// An object is owned when its controller owner reference names the owner's
// UID, or when it has lost that reference and still carries the operator's
// other marks, see [Owns]. A name alone proves nothing: somebody else may have
// taken it, and a cache that holds only labelled objects does not show theirs.
// So the first write is a POST, which cannot merge into anything, and
// AlreadyExists is settled by a live read.
package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
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

// Create creates child, which carries a controller reference to owner. When
// the name is taken by a child of this very owner, child becomes that object,
// read live: an earlier create whose answer was lost, or that the cache does
// not show yet. When it is taken by anything else, the error is a
// ConflictError.
func Create(ctx context.Context, c client.Client, live client.Reader, owner, child client.Object) error {
	err := c.Create(ctx, child)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return readOwn(ctx, c, live, owner, child, func() bool { return metav1.IsControlledBy(child, owner) })
}

// readOwn reads a child from the API server, which must be this owner's.
func readOwn(ctx context.Context, c client.Client, live client.Reader, owner, child client.Object, isOwn func() bool) error {
	if err := live.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
		return err
	}
	if isOwn() {
		return nil
	}
	kind := "object"
	if gvk, err := apiutil.GVKForObject(child, c.Scheme()); err == nil {
		kind = gvk.Kind
	}
	return &ConflictError{Kind: kind, Name: child.GetName(), Predecessor: BelongsToPredecessor(child, owner)}
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
