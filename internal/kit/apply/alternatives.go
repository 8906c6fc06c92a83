package apply

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server-side apply adds what is wanted to what others have set. Where the two
// exclude each other (a port of the same name and another number, minAvailable
// beside maxUnavailable, an exec probe beside a tcpSocket one) the API server
// refuses the whole, and nothing of the child is repaired any more.
//
// So an apply that is refused as invalid, although what is wanted is valid by
// itself, is done again after the fields of spec that others have set by hand were
// made this manager's: what is not wanted of them goes. Metadata, also that of a
// pod template, and what was set through a subresource stay with those who set
// them.

// applyOver applies child, and removes what others have set when that is why the API
// server refuses it. The operator may die between the two writes: the next apply
// continues from there.
func (a Children) applyOver(ctx context.Context, seen client.Object, child *unstructured.Unstructured) error {
	want := child.DeepCopy()
	refusal := a.apply(ctx, child)
	if !isContradiction(refusal) || !a.isValid(ctx, want) {
		return refusal
	}
	patch, err := seizePatch(seen, a.Manager)
	if err != nil || len(patch) == 0 {
		return refusal
	}
	if err := a.Client.Patch(ctx, seen, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(a.Manager)); err != nil {
		return err
	}
	want.SetResourceVersion(seen.GetResourceVersion())
	if err := a.apply(ctx, want); err != nil {
		return err
	}
	child.Object = want.Object
	return nil
}

func (a Children) apply(ctx context.Context, child *unstructured.Unstructured) error {
	return a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(child), client.FieldOwner(a.Manager), client.ForceOwnership)
}

// isContradiction says whether the API server may have refused an object because
// of fields that exclude each other. Its allocator of node ports says so with an
// internal error.
func isContradiction(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsInternalError(err) && strings.Contains(err.Error(), "duplicate nodePort")
}

// isValid says whether a child could be created as it is wanted, if its name
// were free: the API server looks at the name last.
func (a Children) isValid(ctx context.Context, child *unstructured.Unstructured) bool {
	alone := &unstructured.Unstructured{Object: without(child.Object, a.Settled).(map[string]any)}
	alone.SetUID("")
	alone.SetResourceVersion("")
	return apierrors.IsAlreadyExists(a.Client.Create(ctx, alone, client.DryRunAll, client.FieldOwner(a.Manager)))
}

// seizePatch makes the fields of spec that others have set the manager's own, but for the metadata of a pod template. It
// is empty when there are none.
func seizePatch(seen client.Object, manager string) ([]byte, error) {
	obj, err := withSeized(seen, manager, "f:template", "f:metadata")
	if err != nil {
		return nil, err
	}
	return csaupgrade.UpgradeManagedFieldsPatch(obj, sets.New(seized), manager)
}
