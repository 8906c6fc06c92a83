package apply

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A server-side apply removes only what belongs to its manager. So whose fields are is changed first, where what others
// have set is to go once it is not wanted.

// Seized are the managed fields of an object of which the manager has all of spec, whoever has set it, but for the
// replicas: those an autoscaler may have. They belong into the write that replaces what the former managers wanted.
func Seized(seen client.Object, manager string) ([]metav1.ManagedFieldsEntry, error) {
	obj, err := withSeized(seen, manager, "f:replicas")
	if err != nil {
		return nil, err
	}
	err = csaupgrade.UpgradeManagedFields(obj, sets.New(seized), manager)
	return obj.GetManagedFields(), err
}

// seized is the manager that fields have for as long as it takes to add them to another's.
const seized = "seized"

// withSeized is a copy of an object in which the fields of spec that others have set, but for those at a path, are those
// of the manager seized. What was set through a subresource, or in another version of the API, stays with those who set
// it.
func withSeized(seen client.Object, manager string, but ...string) (client.Object, error) {
	obj := seen.DeepCopyObject().(client.Object)
	var all fieldpath.Set
	var taken metav1.ManagedFieldsEntry
	version := versionOf(obj, manager)
	var entries []metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == manager || entry.Subresource != "" || entry.FieldsV1 == nil || entry.APIVersion != version {
			entries = append(entries, entry)
			continue
		}
		ofSpec, rest, err := splitFields(entry.FieldsV1.GetRawBytes(), but...)
		if err != nil {
			return nil, err
		}
		if ofSpec != nil {
			var fields fieldpath.Set
			if err := fields.FromJSON(bytes.NewReader(ofSpec)); err != nil {
				return nil, fmt.Errorf("read the fields of %s: %w", entry.Manager, err)
			}
			all, taken = *all.Union(&fields), entry
		}
		if rest != nil {
			entry.FieldsV1 = metav1.NewFieldsV1(string(rest))
			entries = append(entries, entry)
		}
	}
	if all.Empty() {
		return obj, nil
	}
	// One entry: csaupgrade adds the first of a manager, and drops the others.
	raw, err := all.ToJSON()
	if err != nil {
		return nil, err
	}
	taken.Manager, taken.Operation, taken.FieldsV1 = seized, metav1.ManagedFieldsOperationUpdate, metav1.NewFieldsV1(string(raw))
	obj.SetManagedFields(append(entries, taken))
	return obj, nil
}

// versionOf is the version of the API in which a manager applies an object, or in which others have last written it.
func versionOf(obj client.Object, manager string) string {
	version := ""
	for _, entry := range obj.GetManagedFields() {
		switch {
		case entry.Subresource != "":
		case entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply:
			return entry.APIVersion
		case version == "":
			version = entry.APIVersion
		}
	}
	return version
}

// splitFields parts the fields of spec, but for those at a path below it, from all others. Either is nil if it has none.
func splitFields(raw []byte, but ...string) (ofSpec, rest []byte, err error) {
	var all map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, nil, err
	}
	spec, ok := all["f:spec"].(map[string]any)
	if !ok {
		return nil, raw, nil
	}
	delete(all, "f:spec")
	if kept := cut(spec, but); kept != nil {
		all["f:spec"] = kept
	}
	if len(spec) > 0 {
		if ofSpec, err = json.Marshal(map[string]any{"f:spec": spec}); err != nil {
			return nil, nil, err
		}
	}
	if len(all) > 0 {
		rest, err = json.Marshal(all)
	}
	return ofSpec, rest, err
}

// cut takes what is at a path out of fields, and returns it at its path; nil if nothing is there.
func cut(fields map[string]any, path []string) map[string]any {
	below, ok := fields[path[0]]
	if !ok {
		return nil
	}
	if len(path) > 1 {
		nested, isParent := below.(map[string]any)
		if !isParent {
			return nil
		}
		kept := cut(nested, path[1:])
		if len(nested) == 0 {
			delete(fields, path[0])
		}
		if kept == nil {
			return nil
		}
		return map[string]any{path[0]: kept}
	}
	delete(fields, path[0])
	return map[string]any{path[0]: below}
}
