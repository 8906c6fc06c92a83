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
	versionLabel   = "app.kubernetes.io/version"
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
			objects, err := r.build(folder, r.image)
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

// overlay goes over a folder of the source, with what depends on the release: the image, in the manager's container and
// in the variable that it knows its own by, and the version on every object. It says of which part of an install some are.
const overlay = `
resources: ["$folder"]
transformers:
  - |-
    apiVersion: builtin
    kind: ImageTagTransformer
    metadata: {name: image}
    imageTag: {name: fairlead, newName: "$repository", newTag: "$tag"}
    fieldSpecs:
      - {kind: Deployment, path: "spec/template/spec/containers[]/image"}
      - {kind: Deployment, path: "spec/template/spec/containers[]/env[]/value"}
labels:
  - pairs: {` + versionLabel + `: "$version"}
patches:
  - target: {kind: CustomResourceDefinition}
    patch: |-
      apiVersion: any
      kind: any
      metadata:
        name: any
        labels: {` + componentLabel + `: crds}
        annotations: {` + versionAnnotation + `: "$version"}
  - target: {kind: ClusterRole, name: .*-(editor|viewer)-role}
    patch: |-
      apiVersion: any
      kind: any
      metadata:
        name: any
        labels: {` + componentLabel + `: users}
`

// build runs kustomize on a folder of the source, with the overlay and the manager's image.
func (r *release) build(folder, image string) ([]*unstructured.Unstructured, error) {
	root, err := os.MkdirTemp("", "fairlead-overlay-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(root) }()
	below, err := pathBetween(root, filepath.Join(r.tree, folder))
	if err != nil {
		return nil, err
	}
	repository, tag := splitImage(image)
	fill := strings.NewReplacer("$folder", filepath.ToSlash(below), "$repository", repository, "$tag", tag, "$version", r.version)
	if err := os.WriteFile(filepath.Join(root, "kustomization.yaml"), []byte(fill.Replace(overlay)), 0o600); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // the namespace and the CRDs come first
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), root)
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
		if object.GetKind() == "CustomResourceDefinition" && len(content) >= annotationLimit {
			return nil, fmt.Errorf("%s has %d bytes: kubectl apply takes less than %d", object.GetName(), len(content), annotationLimit)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// pathBetween is the way from one folder to another: kustomize takes no absolute paths.
func pathBetween(from, to string) (string, error) {
	for _, folder := range []*string{&from, &to} {
		full, err := filepath.Abs(*folder)
		if err != nil {
			return "", err
		}
		if *folder, err = filepath.EvalSymlinks(full); err != nil {
			return "", err
		}
	}
	return filepath.Rel(from, to)
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
