package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// csv is the ClusterServiceVersion: what kustomize makes, in the places that
// OLM wants it in, and the texts.
func (r *release) csv(operator string, t *texts, objects []*unstructured.Unstructured, replaces, skipRange string) (map[string]any, error) {
	var permissions, clusterPermissions, owned, deployments []any
	// In an install for one namespace OLM makes Roles of permissions there, in
	// one for all namespaces ClusterRoles. What is never namespaced is apart;
	// and what is for the operator's own namespace, whatever it works for, is no
	// permission but a Role in the bundle.
	image, err := r.imageByDigest()
	if err != nil {
		return nil, err
	}
	namespaced, account := []any{}, ""
	for _, object := range objects {
		switch object.GetKind() {
		case "ServiceAccount":
			account = object.GetName()
		case "ClusterRole":
			if strings.HasSuffix(object.GetName(), "manager-role") {
				namespaced = append(namespaced, object.Object["rules"].([]any)...)
			}
			if strings.HasSuffix(object.GetName(), "metrics-auth-role") {
				clusterPermissions = append(clusterPermissions, map[string]any{"rules": object.Object["rules"]})
			}
		case "CustomResourceDefinition":
			descriptions, err := ownedCRD(object, t)
			if err != nil {
				return nil, err
			}
			owned = append(owned, descriptions...)
		case "Deployment":
			deployment, err := olmDeployment(object, t.Package, image)
			if err != nil {
				return nil, err
			}
			deployments = append(deployments, deployment)
		}
	}
	permissions = append(permissions, map[string]any{"serviceAccountName": account, "rules": namespaced})
	for _, permission := range clusterPermissions {
		permission.(map[string]any)["serviceAccountName"] = account
	}
	examples, err := r.examples(operator, objects)
	if err != nil {
		return nil, err
	}
	related := []any{map[string]any{"name": "manager", "image": image}}
	for _, image := range t.RelatedImages {
		related = append(related, image)
	}

	spec := map[string]any{
		"displayName": t.DisplayName, "description": t.Description, "version": r.version,
		"keywords": t.Keywords, "maturity": t.Maturity, "minKubeVersion": t.MinKubeVersion,
		"provider": t.Provider, "maintainers": t.Maintainers, "links": t.Links,
		"icon":          []any{map[string]any{"mediatype": "image/svg+xml", "base64data": t.iconBase64()}},
		"installModes":  installModes(),
		"relatedImages": related,
		"install": map[string]any{"strategy": "deployment", "spec": map[string]any{
			"permissions": permissions, "clusterPermissions": clusterPermissions, "deployments": deployments,
		}},
		"customresourcedefinitions": map[string]any{"owned": owned},
	}
	if replaces != "" {
		spec["replaces"] = replaces
	}
	made := map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1",
		"kind":       "ClusterServiceVersion",
		"metadata": map[string]any{
			"name":      csvName(t, r.version),
			"namespace": "placeholder",
			"labels": map[string]any{
				"operatorframework.io/os.linux":   "supported",
				"operatorframework.io/arch.amd64": "supported",
				"operatorframework.io/arch.arm64": "supported",
			},
			"annotations": map[string]any{
				"alm-examples":   examples,
				"capabilities":   t.Capabilities,
				"categories":     t.Categories,
				"containerImage": image,
				"createdAt":      r.date.Format("2006-01-02T15:04:05Z"),
				"description":    t.Summary,
				"support":        t.Provider["name"],
				"operatorframework.io/suggested-namespace": operator + "-operator-system",
			},
		},
		"spec": spec,
	}
	annotations := made["metadata"].(map[string]any)["annotations"].(map[string]any)
	if t.Repository != "" {
		annotations["repository"] = t.Repository
	}
	for feature, has := range t.Features {
		annotations["features.operators.openshift.io/"+feature] = strconv.FormatBool(has)
	}
	if skipRange != "" {
		annotations["olm.skipRange"] = skipRange
	}
	return made, nil
}

func csvName(t *texts, version string) string { return t.CSV + ".v" + version }

// installModes are all there are: the manager takes any list of namespaces.
func installModes() []any {
	var modes []any
	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		modes = append(modes, map[string]any{"type": mode, "supported": true})
	}
	return modes
}

// olmDeployment is the manager's Deployment. OLM says which namespaces to
// watch; and as it installs many operators into one namespace, their pods need
// labels that tell them apart.
func olmDeployment(object *unstructured.Unstructured, name, image string) (map[string]any, error) {
	err := eachContainer(object, func(container map[string]any) {
		container["image"] = image
		for _, variable := range container["env"].([]any) {
			if variable := variable.(map[string]any); variable["name"] == "WATCH_NAMESPACE" {
				delete(variable, "value")
				variable["valueFrom"] = map[string]any{"fieldRef": map[string]any{
					"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}
			}
		}
	})
	spec := object.Object["spec"].(map[string]any)
	for _, labels := range [][]string{{"selector", "matchLabels"}, {"template", "metadata", "labels"}} {
		err = unstructured.SetNestedField(spec, name, append(labels, "app.kubernetes.io/name")...)
	}
	return map[string]any{"name": object.GetName(), "label": object.GetLabels(), "spec": spec}, err
}

// ownedCRD describes every version of a CRD, from its schema.
func ownedCRD(crd *unstructured.Unstructured, t *texts) ([]any, error) {
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return nil, err
	}
	var owned []any
	for _, version := range versions {
		version := version.(map[string]any)
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		description, _ := schema["description"].(string)
		owned = append(owned, map[string]any{
			"name": crd.GetName(), "version": version["name"], "kind": kind,
			"displayName":       fmt.Sprintf("%s (%s)", kind, group),
			"description":       firstParagraph(description),
			"resources":         t.Resources[crd.GetName()],
			"specDescriptors":   descriptors(schema, "spec"),
			"statusDescriptors": descriptors(schema, "status"),
		})
	}
	return owned, nil
}

// widgets are how consoles show a field, by its name or type.
var widgets = map[string]string{
	"replicas": "podCount", "size": "podCount", "resources": "resourceRequirements", "image": "text",
	"boolean": "booleanSwitch", "integer": "number", "string": "text",
}

func descriptors(schema map[string]any, part string) []any {
	properties, _, _ := unstructured.NestedMap(schema, "properties", part, "properties")
	var names []string
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	var all []any
	for _, name := range names {
		property := properties[name].(map[string]any)
		description, _ := property["description"].(string)
		descriptor := map[string]any{"path": name, "displayName": words(name), "description": firstParagraph(description)}
		widget := widgets[name]
		if widget == "" {
			kind, _ := property["type"].(string)
			widget = widgets[kind]
		}
		switch {
		case part == "status" && name == "conditions":
			descriptor["x-descriptors"] = []any{"urn:alm:descriptor:io.kubernetes.conditions"}
		case part == "spec" && widget != "":
			descriptor["x-descriptors"] = []any{"urn:alm:descriptor:com.tectonic.ui:" + widget}
		}
		all = append(all, descriptor)
	}
	return all
}

// abbreviations that begin a field's name, where they are small letters.
var abbreviations = []string{"cpu", "tls", "ttl", "url"}

// words makes startingDeadlineSeconds "Starting deadline seconds", and podUID
// "Pod UID".
func words(name string) string {
	var found []string
	letters, start := []rune(name), 0
	for i := 1; i <= len(letters); i++ {
		if i == len(letters) || unicode.IsUpper(letters[i]) &&
			(!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			found, start = append(found, string(letters[start:i])), i
		}
	}
	for i, word := range found {
		switch {
		case slices.Contains(abbreviations, word):
			found[i] = strings.ToUpper(word)
		case i == 0:
			found[i] = strings.ToUpper(word[:1]) + word[1:]
		case word != strings.ToUpper(word):
			found[i] = strings.ToLower(word)
		}
	}
	return strings.Join(found, " ")
}

func firstParagraph(text string) string {
	first, _, _ := strings.Cut(text, "\n\n")
	return strings.Join(strings.Fields(first), " ")
}

// allFields ends the name of a sample that shows every field of its kind.
const allFields = "_all_fields.yaml"

// examples are the samples of the kinds that the operator owns, as JSON. Those
// with every field are last: consoles begin a new object with the first one.
func (r *release) examples(operator string, objects []*unstructured.Unstructured) (string, error) {
	kinds := map[string]bool{}
	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
			kinds[group+"/"+kind] = true
		}
	}
	samples, err := filepath.Glob(filepath.Join(r.tree, filepath.FromSlash(configOf(operator)), "samples", "*.yaml"))
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(samples, func(a, b string) int {
		return cmp.Compare(strings.Count(a, allFields), strings.Count(b, allFields))
	})
	var examples []any
	for _, sample := range samples {
		content, err := os.ReadFile(sample)
		if err != nil {
			return "", err
		}
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			example := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &example.Object); err != nil {
				return "", fmt.Errorf("%s: %w", sample, err)
			}
			group, _, _ := strings.Cut(example.GetAPIVersion(), "/")
			if kinds[group+"/"+example.GetKind()] {
				examples = append(examples, example.Object)
			}
		}
	}
	out, err := json.MarshalIndent(examples, "", "  ")
	return string(out), err
}
