package sim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// definition is one served version of a CRD: what the API server lets in, and in
// which form, by the API server's own libraries. It is safe for concurrent use.
type definition struct {
	kind      schema.GroupVersionKind
	hasStatus bool // there is the subresource
	schema    *structuralschema.Structural
	all       validation.SchemaValidator
	status    validation.SchemaValidator
	rules     *cel.Validator
	types     managedfields.TypeConverter // for managed fields
	admitted  memo[admitted]
}

// admitted is the verdict on a write.
type admitted struct {
	// obj has the spec and the status as they would be stored.
	obj client.Object
	err error
	// same says that they are as they came.
	same bool
}

// readDefinitions reads all CRDs in the manifests (*.yaml) of the folders.
func readDefinitions(folders ...string) (map[schema.GroupVersionKind]*definition, error) {
	all := map[schema.GroupVersionKind]*definition{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(b, crd); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if crd.Kind != "CustomResourceDefinition" {
				continue
			}
			for i := range crd.Spec.Versions {
				if version := &crd.Spec.Versions[i]; version.Served {
					d, err := newDefinition(crd, version)
					if err != nil {
						return nil, fmt.Errorf("%s: version %s: %w", file, version.Name, err)
					}
					all[d.kind] = d
				}
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no CRDs in %q", folders)
	}
	return all, nil
}

// newDefinition compiles a version of a CRD, as the API server does once it is established.
func newDefinition(crd *apiextensionsv1.CustomResourceDefinition, version *apiextensionsv1.CustomResourceDefinitionVersion) (*definition, error) {
	d := &definition{
		kind:      schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind},
		hasStatus: version.Subresources != nil && version.Subresources.Status != nil,
	}
	props := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, props, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	d.schema = structural.DeepCopy() // it shares the defaults, which are pruned
	if err := defaulting.PruneDefaults(d.schema); err != nil {
		return nil, err
	}
	if d.all, _, err = validation.NewSchemaValidator(props.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if status, ok := props.OpenAPIV3Schema.Properties["status"]; ok && d.hasStatus {
		if d.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	if d.types, err = typesOf(d.kind, structural); err != nil {
		return nil, err
	}
	d.rules = cel.NewValidator(d.schema, true, celconfig.PerCallLimit)
	return d, nil
}

// typesOf is how server-side apply takes objects of a kind apart: by the schema of its CRD, and by that which metadata
// has in all kinds. The API server has both in the OpenAPI document that it publishes.
func typesOf(kind schema.GroupVersionKind, structural *structuralschema.Structural) (managedfields.TypeConverter, error) {
	ref := func(name string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + name) }
	schemas := map[string]*spec.Schema{}
	for name, definition := range openapi.GetOpenAPIDefinitions(ref) {
		schemas[name] = &definition.Schema
	}
	own := structural.ToKubeOpenAPI()
	own.SetProperty("apiVersion", *spec.StringProperty())
	own.SetProperty("kind", *spec.StringProperty())
	own.SetProperty("metadata", spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(metav1.ObjectMeta{}.OpenAPIModelName())}})
	own.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}})
	schemas[kind.String()] = own
	return managedfields.NewTypeConverter(schemas, false)
}

// admit returns obj as it would be stored in place of old (nil if it is created):
// without unknown fields, with defaults, and with the status of old, or, by the
// subresource status, with nothing but its status in place of that of old. What
// breaks the CRD's schema or its rules is refused as the API server refuses it.
// Metadata other than the name is not looked at. The result may be obj itself.
func (d *definition) admit(obj, old client.Object, subresource string) (client.Object, error) {
	h := newHash()
	h.text(subresource)
	h.text(obj.GetName())
	h.text(obj.GetGenerateName())
	h.text(reflect.TypeOf(obj).String())
	if err := h.object(content(obj)); err != nil {
		return nil, err
	}
	h.flag(old == nil)
	if old != nil {
		if err := h.object(content(old)); err != nil {
			return nil, err
		}
	}
	key := h.Sum64()
	verdict, ok := d.admitted.get(key)
	if !ok {
		verdict.obj, verdict.err = d.judge(obj, old, subresource)
		_, isTyped := obj.(metav1.ObjectMetaAccessor)
		verdict.same = isTyped && verdict.err == nil && equality.Semantic.DeepEqual(content(verdict.obj), content(obj))
		// Where there are times, only this is the same for all that have the key.
		if verdict.same || len(h.seen) == 0 {
			d.admitted.put(key, verdict)
		}
	}
	if verdict.err != nil {
		return nil, verdict.err
	}
	if verdict.same {
		return obj, nil
	}
	result := verdict.obj.DeepCopyObject().(client.Object)
	if subresource == "" {
		setMeta(result, obj)
	} else {
		setMeta(result, old)
		result.SetManagedFields(obj.GetManagedFields()) // they have the change already
	}
	result.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return result, nil
}

// judge is admit without the memory. Its steps are those of the API server's
// request handler, and of its strategies for custom resources.
func (d *definition) judge(obj, old client.Object, subresource string) (client.Object, error) {
	after, err := d.decode(obj)
	if err != nil {
		return nil, err
	}
	var before map[string]any
	if old != nil {
		if before, err = d.decode(old); err != nil {
			return nil, err
		}
	}
	switch {
	case subresource == "status":
		status, ok := after["status"]
		after = runtime.DeepCopyJSON(before)
		set(after, "status", status, ok)
	case d.hasStatus:
		status, ok := before["status"]
		set(after, "status", status, ok)
	}
	if errs := d.validate(after, before, subresource); len(errs) > 0 {
		return nil, apierrors.NewInvalid(d.kind.GroupKind(), obj.GetName(), errs)
	}
	// What is read has defaults, also where there was nothing to write.
	defaulting.Default(after, d.schema)

	result := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if u, ok := result.(*unstructured.Unstructured); ok {
		u.Object = after
		return u, nil
	}
	return result, runtime.DefaultUnstructuredConverter.FromUnstructured(after, result)
}

// set sets or removes a field.
func set(obj map[string]any, name string, value any, there bool) {
	if there {
		obj[name] = value
	} else {
		delete(obj, name)
	}
}

// decode is what the API server makes of an object that it reads.
func (d *definition) decode(obj client.Object) (map[string]any, error) {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(content(obj))
	if err != nil {
		return nil, err
	}
	u["apiVersion"], u["kind"] = d.kind.GroupVersion().String(), d.kind.Kind
	metadata := map[string]any{}
	for field, value := range map[string]string{"name": obj.GetName(), "generateName": obj.GetGenerateName(), "namespace": obj.GetNamespace()} {
		if value != "" {
			metadata[field] = value
		}
	}
	delete(u, "metadata")
	pruning.Prune(u, d.schema, true)
	u["metadata"] = metadata
	defaulting.PruneNonNullableNullsWithoutDefaults(u, d.schema)
	if err := objectmeta.Coerce(nil, u, d.schema, false, false); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	defaulting.Default(u, d.schema)
	return u, nil
}

// validate says what is wrong with obj, in place of old, or created if old is nil.
func (d *definition) validate(obj, old map[string]any, subresource string) field.ErrorList {
	ctx := context.Background()
	var errs field.ErrorList
	var options []cel.Option
	lists := listtype.ValidateListSetsAndMaps(nil, d.schema, obj)
	if old == nil {
		errs = append(errs, validation.ValidateCustomResource(nil, obj, d.all)...)
		errs = append(errs, objectmeta.Validate(ctx, nil, obj, d.schema, false)...)
	} else {
		// What was wrong before and is unchanged is let through.
		both := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: d.schema})
		options = append(options, cel.WithRatcheting(both))
		if subresource == "status" {
			if status, ok := obj["status"]; ok {
				errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old["status"], d.status,
					validation.WithRatcheting(both.Key("status")))...)
			}
		} else {
			errs = append(errs, validation.ValidateCustomResourceUpdate(nil, obj, old, d.all, validation.WithRatcheting(both))...)
			errs = append(errs, objectmeta.Validate(ctx, nil, obj, d.schema, false)...)
		}
		if len(lists) > 0 && len(listtype.ValidateListSetsAndMaps(nil, d.schema, old)) > 0 {
			lists = nil
		}
	}
	errs = append(errs, lists...)
	if d.rules == nil {
		return errs
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		default:
		}
	}
	var was any // an untyped nil is none
	if old != nil {
		was = old
	}
	broken, _ := d.rules.Validate(ctx, nil, d.schema, obj, was, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, broken...)
}

// content returns a copy of an object without metadata and kind, which shares the
// rest with it.
func content(obj client.Object) client.Object {
	v := shallow(obj)
	if u, ok := v.(*unstructured.Unstructured); ok {
		delete(u.Object, "metadata")
		return u
	}
	*objectMeta(v) = metav1.ObjectMeta{}
	v.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return v
}

// setMeta gives an object a copy of another's metadata.
func setMeta(obj, from client.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object["metadata"] = runtime.DeepCopyJSONValue(from.(*unstructured.Unstructured).Object["metadata"])
		return
	}
	objectMeta(from).DeepCopyInto(objectMeta(obj))
}

// objectMeta returns the metadata of a typed object, for writing.
func objectMeta(obj client.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}
