package sim

import (
	"fmt"
	"net/http"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (s *Server) update(k *Kind, obj client.Object, w write) (client.Object, error) {
	obj, err := k.received(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	old, err := s.find(k, client.ObjectKeyFromObject(obj))
	if err != nil {
		return nil, err
	}
	if k.definition != nil && obj.GetResourceVersion() == "" {
		return nil, invalid(k, obj.GetName(), field.NewPath("metadata", "resourceVersion"), "must be specified for an update")
	}
	return s.replace(k, old, obj, w, true)
}

// immutable refuses a patch of the UID. It is not the conflict that it is in an update.
func immutable(k *Kind, old, obj client.Object) error {
	if obj.GetUID() == old.GetUID() || obj.GetResourceVersion() != old.GetResourceVersion() {
		return nil
	}
	return invalid(k, old.GetName(), field.NewPath("metadata", "uid"), "field is immutable")
}

// replace stores another version of an object: obj, which nobody else has.
func (s *Server) replace(k *Kind, old, obj client.Object, w write, isUpdate bool) (client.Object, error) {
	name := old.GetName()
	if uid := obj.GetUID(); uid != "" && uid != old.GetUID() {
		return nil, s.conflict(k, name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, old.GetUID()))
	}
	if version := obj.GetResourceVersion(); version != "" && version != old.GetResourceVersion() {
		return nil, s.conflict(k, name, "the object has been modified; please apply your changes to the latest version and try again")
	}
	switch w.subresource {
	case "status":
		fresh := old.DeepCopyObject().(client.Object)
		k.takeField(fresh, obj, k.status, "status")
		if k.definition == nil {
			fresh.SetLabels(obj.GetLabels())
			fresh.SetAnnotations(obj.GetAnnotations())
		}
		fresh.SetManagedFields(obj.GetManagedFields())
		obj = fresh
	case "":
		k.takeField(obj, old, k.status, "status")
	case "resize":
		obj = resized(old, obj)
	}
	obj.SetUID(old.GetUID())
	obj.SetResourceVersion(old.GetResourceVersion())
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	obj.SetGeneration(old.GetGeneration())
	obj, err := s.admitted(k, old, obj, w.subresource)
	if err != nil {
		return nil, err
	}
	if old.GetDeletionTimestamp() != nil {
		for _, finalizer := range obj.GetFinalizers() {
			if !slices.Contains(old.GetFinalizers(), finalizer) {
				return nil, invalid(k, name, field.NewPath("metadata", "finalizers"), "no new finalizers can be added if the object is being deleted")
			}
		}
	}
	isSame := w.subresource == "status" || k.sameSpec(old, obj)
	if !isSame {
		nextGeneration(old, obj)
	}
	if isUpdate {
		if err := s.API.fields.update(old, obj, w.manager, w.subresource, s.now()); err != nil {
			return nil, err
		}
	}
	if w.dryRun {
		return obj, nil
	}
	if isSame && k.isSame(old, obj, w.subresource) {
		return old, nil // the API server does not store what changes nothing
	}
	grace := obj.GetDeletionGracePeriodSeconds()
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 && len(old.GetFinalizers()) > 0 && (grace == nil || *grace == 0) {
		return s.remove(k, obj, w), nil
	}
	s.put(k, Change{Kind: k, Type: watch.Modified, Old: old, New: obj, By: w.by})
	return obj, nil
}

// countsGenerations says whether objects of a kind have a generation.
func (k *Kind) countsGenerations() bool {
	switch k.Kind {
	case "Service", "PersistentVolumeClaim", "Namespace", "Node":
		return false
	}
	return k.definition != nil || k.spec != nil
}

// nextGeneration is for a change that counts, as a deletion does.
func nextGeneration(old, obj client.Object) {
	if generation := old.GetGeneration(); generation > 0 {
		obj.SetGeneration(generation + 1)
	}
}

// isSame says whether a write that keeps the spec changes nothing at all.
func (k *Kind) isSame(old, obj client.Object, subresource string) bool {
	if k.goType == nil || k.spec == nil {
		return equality.Semantic.DeepEqual(old, obj)
	}
	return (subresource == "" || equality.Semantic.DeepEqual(part(old, k.status), part(obj, k.status))) &&
		equality.Semantic.DeepEqual(objectMeta(old), objectMeta(obj))
}

// sameSpec says whether what counts as a generation is the same.
func (k *Kind) sameSpec(old, obj client.Object) bool {
	if k.goType == nil {
		a, b := shallowMap(old), shallowMap(obj)
		return equality.Semantic.DeepEqual(a, b)
	}
	if k.spec == nil {
		return true
	}
	return equality.Semantic.DeepEqual(part(old, k.spec), part(obj, k.spec))
}

// shallowMap has what of an unstructured object is neither metadata nor status.
func shallowMap(obj client.Object) map[string]any {
	rest := map[string]any{}
	for name, value := range obj.(*unstructured.Unstructured).Object {
		if name != "metadata" && name != "status" {
			rest[name] = value
		}
	}
	return rest
}

func (s *Server) patch(k *Kind, key types.NamespacedName, how types.PatchType, data []byte, w write) (client.Object, error) {
	old, err := s.find(k, key)
	if err != nil {
		return nil, err
	}
	before, restore, err := k.asJSON(old, data)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch how {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, data)
	case types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(data); err == nil {
			after, err = patch.Apply(before)
		}
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", k.groupResource(), key.Name, err.Error(), 0, false)
		}
	case types.StrategicMergePatchType:
		if k.definition != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", k.groupResource(), key.Name, "", 0, false)
		}
		after, err = strategicpatch.StrategicMergePatch(before, data, k.empty())
	default:
		return nil, fmt.Errorf("a patch of type %s is not simulated", how)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj, err := k.fromJSON(after)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", k.groupResource(), key.Name, err.Error(), 0, false)
	}
	restore(obj)
	if err := immutable(k, old, obj); err != nil {
		return nil, err
	}
	return s.replace(k, old, obj, w, true)
}

// apply is a server-side apply.
func (s *Server) apply(k *Kind, want *unstructured.Unstructured, w write) (client.Object, error) {
	key := client.ObjectKeyFromObject(want)
	live, err := s.find(k, key)
	switch {
	case apierrors.IsNotFound(err):
		if want.GetUID() != "" {
			return nil, s.conflict(k, key.Name, fmt.Sprintf("uid mismatch: the provided object specified uid %s, and no existing object was found", want.GetUID()))
		}
		live = nil
	case err != nil:
		return nil, err
	}
	obj, err := s.API.fields.apply(live, want, w.manager, w.force, s.now())
	if err != nil {
		return nil, err
	}
	if live == nil {
		return s.add(k, obj, w, false)
	}
	if version := want.GetResourceVersion(); version != "" {
		obj.SetResourceVersion(version)
	}
	if uid := want.GetUID(); uid != "" {
		obj.SetUID(uid)
	}
	if err := immutable(k, live, obj); err != nil {
		return nil, err
	}
	return s.replace(k, live, obj, w, false)
}
