package apply

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/names"
)

// The labels of every object that an operator creates. Caches hold no other
// objects of the kinds that operators own.
const (
	// ManagedByLabel has the value <operator>-operator, which is the field
	// manager, too.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// InstanceLabel has the name of the owner, as [names.LabelValue] has it.
	InstanceLabel = "app.kubernetes.io/instance"
)

// OwnerReference makes owner the controller of a child.
func OwnerReference(owner metav1.Object, gvk schema.GroupVersionKind) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(gvk.GroupVersion().String()).
		WithKind(gvk.Kind).
		WithName(owner.GetName()).
		WithUID(owner.GetUID()).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// Owns says whether owner owns child, for the operator with that field manager.
//
// owner must be child's controller. Or nothing controls child, the labels name no other
// owner, and two of three marks remain: both labels, the annotation of the last apply,
// and the field manager's entry in managedFields. So a child is recognised after its
// owner was deleted with --cascade=orphan and created again, after a restore from a
// backup that drops owner references, or after its owner reference was removed.
func Owns(manager string, owner, child client.Object) bool {
	if controller := metav1.GetControllerOf(child); controller != nil {
		return controller.UID == owner.GetUID()
	}
	labels := child.GetLabels()
	instance, managedBy := labels[InstanceLabel], labels[ManagedByLabel]
	if child.GetUID() == "" || instance != "" && instance != names.LabelValue(owner.GetName()) {
		return false
	}
	marks := 0
	if instance != "" && managedBy == manager {
		marks++
	}
	if child.GetAnnotations()[appliedAnnotation(manager)] != "" {
		marks++
	}
	if slices.ContainsFunc(child.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager }) {
		marks++
	}
	return marks >= 2
}

// lostMarks says whether a child of owner must be taken back: it has lost its
// owner reference or the label by which the cache shows it.
func lostMarks(manager string, owner, child client.Object) bool {
	return !metav1.IsControlledBy(child, owner) || child.GetLabels()[ManagedByLabel] != manager
}

// appliedAnnotation has the hash of what was last applied.
func appliedAnnotation(manager string) string { return manager + "/applied" }
