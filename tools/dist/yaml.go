package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	// versionAnnotation is on every CRD: the version of Fairlead it is from.
	versionAnnotation = "fairlead.example.com/version"
	// By this label, kubectl's selectors can leave parts out, or take only them.
	componentLabel = "app.kubernetes.io/component"
	// An administrator can install these two parts by themselves.
	crdComponent, userComponent = "crds", "users"
	versionLabel                = "app.kubernetes.io/version"
	// agentImage is the manager's variable with its own image.
	agentImage = "ETCD_AGENT_IMAGE"
	// annotationLimit is how much kubectl apply can keep in its annotation.
	annotationLimit = 262144
)

// all is every operator in one manager.
const all = "all"

// writeYAML writes a manifest per operator and one for all, for the whole
// cluster and for one namespace.
func (r *release) writeYAML() error {
	names, err := r.installs()
	if err != nil {
		return err
	}
	for _, name := range names {
		for overlay, file := range map[string]string{"default": "install", "namespaced": "install-namespaced"} {
			folder := path.Join(configOf(name), overlay)
			if _, err := os.Stat(filepath.Join(r.tree, folder)); os.IsNotExist(err) && overlay != "default" {
				continue // older versions have no such overlay
			}
			objects, err := r.build(folder)
			if err != nil {
				return err
			}
			if name != all {
				file += "-" + name
			}
			manifest, err := marshalAll(objects)
			if err != nil {
				return err
			}
			if err := r.write(file+".yaml", manifest); err != nil {
				return err
			}
		}
	}
	return nil
}

// configOf is the kustomize folder of an operator, or of all.
func configOf(operator string) string {
	if operator == all {
		return "operators/config"
	}
	return path.Join("operators", operator, "config")
}

// build runs kustomize on a folder of the source and puts in what depends on
// the release: the image, and the version on every object.
func (r *release) build(folder string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // the namespace and the CRDs come first
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(r.tree, folder))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, err
		}
		setLabel(object, versionLabel, r.version)
		switch object.GetKind() {
		case "CustomResourceDefinition":
			setLabel(object, componentLabel, crdComponent)
			setAnnotation(object, versionAnnotation, r.version)
			if err := smallEnough(object); err != nil {
				return nil, err
			}
		case "ClusterRole":
			if name := object.GetName(); strings.HasSuffix(name, "-editor-role") || strings.HasSuffix(name, "-viewer-role") {
				setLabel(object, componentLabel, userComponent)
			}
		case "Deployment":
			if err := eachContainer(object, func(container map[string]any) { setImage(container, r.image) }); err != nil {
				return nil, err
			}
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// setImage sets the image of a manager, and what it knows it by.
func setImage(container map[string]any, image string) {
	container["image"] = image
	variables, _ := container["env"].([]any)
	for _, variable := range variables {
		if v, ok := variable.(map[string]any); ok && v["name"] == agentImage {
			v["value"] = image
		}
	}
}

// smallEnough says whether kubectl apply can keep the object in its annotation.
func smallEnough(object *unstructured.Unstructured) error {
	content, err := object.MarshalJSON()
	if err == nil && len(content) >= annotationLimit {
		err = fmt.Errorf("%s has %d bytes: kubectl apply takes less than %d", object.GetName(), len(content), annotationLimit)
	}
	return err
}

func eachContainer(deployment *unstructured.Unstructured, change func(map[string]any)) error {
	fields := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, fields...)
	if err != nil {
		return err
	}
	for _, container := range containers {
		change(container.(map[string]any))
	}
	return unstructured.SetNestedSlice(deployment.Object, containers, fields...)
}

func setLabel(object *unstructured.Unstructured, key, value string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	object.SetLabels(labels)
}

func setAnnotation(object *unstructured.Unstructured, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

// marshalAll is the objects as one YAML file.
func marshalAll(objects []*unstructured.Unstructured) ([]byte, error) {
	var file bytes.Buffer
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&file, "---\n%s", text)
	}
	return file.Bytes(), nil
}
