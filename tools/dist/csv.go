package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// csv is the ClusterServiceVersion: what kustomize makes, in the places that
// OLM wants it in, and the texts.
func (r *release) csv(operator string, t *texts, objects []*unstructured.Unstructured, image, replaces, skipRange string,
) (*v1alpha1.ClusterServiceVersion, error) {
	number, err := semver.Parse(r.version)
	if err != nil {
		return nil, err
	}
	examples, err := r.examples(operator, objects)
	if err != nil {
		return nil, err
	}
	made := &v1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{
			APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind,
		},
		ObjectMeta: metav1.ObjectMeta{
			Name:      csvName(t, r.version),
			Namespace: "placeholder",
			Labels: map[string]string{
				"operatorframework.io/os.linux":   "supported",
				"operatorframework.io/arch.amd64": "supported",
				"operatorframework.io/arch.arm64": "supported",
			},
			Annotations: map[string]string{
				"alm-examples":   examples,
				"capabilities":   t.Capabilities,
				"categories":     t.Categories,
				"containerImage": image,
				"createdAt":      r.date.Format("2006-01-02T15:04:05Z"),
				"description":    t.Summary,
				"support":        t.Provider.Name,
				"operatorframework.io/suggested-namespace": operator + "-operator-system",
			},
		},
		Spec: v1alpha1.ClusterServiceVersionSpec{
			DisplayName: t.DisplayName, Description: t.Description, Version: version.OperatorVersion{Version: number},
			Keywords: t.Keywords, Maturity: t.Maturity, MinKubeVersion: t.MinKubeVersion,
			Provider: t.Provider, Maintainers: t.Maintainers, Links: t.Links,
			Icon:          []v1alpha1.Icon{{MediaType: "image/svg+xml", Data: t.iconBase64()}},
			InstallModes:  installModes(),
			RelatedImages: append([]v1alpha1.RelatedImage{{Name: "manager", Image: image}}, t.RelatedImages...),
			Replaces:      replaces,
		},
	}
	if t.Repository != "" {
		made.Annotations["repository"] = t.Repository
	}
	for feature, has := range t.Features {
		made.Annotations["features.operators.openshift.io/"+feature] = strconv.FormatBool(has)
	}
	if skipRange != "" {
		made.Annotations["olm.skipRange"] = skipRange
	}
	return made, addObjects(&made.Spec, objects, t)
}

// addObjects puts what kustomize makes into a ClusterServiceVersion.
//
// In an install for one namespace OLM makes Roles of permissions there, in one
// for all namespaces ClusterRoles. What is never namespaced is apart; and what
// is for the operator's own namespace, whatever it works for, is no permission
// but a Role in the bundle.
func addObjects(to *v1alpha1.ClusterServiceVersionSpec, objects []*unstructured.Unstructured, t *texts) error {
	var manager, metrics v1alpha1.StrategyDeploymentPermissions
	strategy := v1alpha1.StrategyDetailsDeployment{}
	for _, object := range objects {
		switch object.GetKind() {
		case "ServiceAccount":
			manager.ServiceAccountName, metrics.ServiceAccountName = object.GetName(), object.GetName()
		case "ClusterRole":
			role := &rbacv1.ClusterRole{}
			if err := typed(object, role); err != nil {
				return err
			}
			switch {
			case strings.HasSuffix(role.Name, "manager-role"):
				manager.Rules = append(manager.Rules, role.Rules...)
			case strings.HasSuffix(role.Name, "metrics-auth-role"), strings.HasSuffix(role.Name, "nodes-role"):
				metrics.Rules = append(metrics.Rules, role.Rules...)
			}
		case "CustomResourceDefinition":
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := typed(object, crd); err != nil {
				return err
			}
			to.CustomResourceDefinitions.Owned = append(to.CustomResourceDefinitions.Owned, ownedCRD(crd, t)...)
		case "Deployment":
			deployment := &appsv1.Deployment{}
			if err := typed(object, deployment); err != nil {
				return err
			}
			strategy.DeploymentSpecs = append(strategy.DeploymentSpecs, olmDeployment(deployment, t.Chart))
		}
	}
	strategy.Permissions = []v1alpha1.StrategyDeploymentPermissions{manager}
	strategy.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{metrics}
	to.InstallStrategy = v1alpha1.NamedInstallStrategy{
		StrategyName: v1alpha1.InstallStrategyNameDeployment, StrategySpec: strategy,
	}
	return nil
}

// typed reads an object into its type, which has all of its fields.
func typed(object *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true)
}

func csvName(t *texts, version string) string { return t.CSV + ".v" + version }

// installModes are all there are: the manager takes any list of namespaces.
func installModes() []v1alpha1.InstallMode {
	var modes []v1alpha1.InstallMode
	for _, mode := range []v1alpha1.InstallModeType{
		v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeSingleNamespace,
		v1alpha1.InstallModeTypeMultiNamespace, v1alpha1.InstallModeTypeAllNamespaces,
	} {
		modes = append(modes, v1alpha1.InstallMode{Type: mode, Supported: true})
	}
	return modes
}

// olmDeployment is the manager's Deployment. OLM says which namespaces to
// watch; and as it installs many operators into one namespace, their pods need
// labels that tell them apart.
func olmDeployment(deployment *appsv1.Deployment, name string) v1alpha1.StrategyDeploymentSpec {
	pod := &deployment.Spec.Template
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		for j := range container.Env {
			if variable := &container.Env[j]; variable.Name == "WATCH_NAMESPACE" {
				*variable = corev1.EnvVar{Name: variable.Name, ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['olm.targetNamespaces']"},
				}}
			}
		}
	}
	deployment.Spec.Selector.MatchLabels["app.kubernetes.io/name"] = name
	pod.Labels["app.kubernetes.io/name"] = name
	return v1alpha1.StrategyDeploymentSpec{Name: deployment.Name, Label: deployment.Labels, Spec: deployment.Spec}
}

// ownedCRD describes every version of a CRD, from its schema.
func ownedCRD(crd *apiextensionsv1.CustomResourceDefinition, t *texts) []v1alpha1.CRDDescription {
	var owned []v1alpha1.CRDDescription
	for _, version := range crd.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		description := v1alpha1.CRDDescription{
			Name: crd.Name, Version: version.Name, Kind: crd.Spec.Names.Kind,
			DisplayName: fmt.Sprintf("%s (%s)", crd.Spec.Names.Kind, crd.Spec.Group),
			Description: firstParagraph(schema.Description),
			Resources:   t.Resources[crd.Name],
		}
		for _, field := range descriptors(schema.Properties["spec"].Properties) {
			if widget := cmp.Or(widgets[field.name], widgets[field.kind]); widget != "" {
				field.XDescriptors = []string{"urn:alm:descriptor:com.tectonic.ui:" + widget}
			}
			description.SpecDescriptors = append(description.SpecDescriptors, field.SpecDescriptor)
		}
		for _, field := range descriptors(schema.Properties["status"].Properties) {
			if field.name == "conditions" {
				field.XDescriptors = []string{"urn:alm:descriptor:io.kubernetes.conditions"}
			}
			description.StatusDescriptors = append(description.StatusDescriptors, v1alpha1.StatusDescriptor(field.SpecDescriptor))
		}
		owned = append(owned, description)
	}
	return owned
}

// widgets are how consoles show a field, by its name or type.
var widgets = map[string]string{
	"replicas": "podCount", "size": "podCount", "resources": "resourceRequirements", "image": "text",
	"boolean": "booleanSwitch", "integer": "number", "string": "text",
}

// described is a field and what consoles say of it.
type described struct {
	name, kind string
	v1alpha1.SpecDescriptor
}

// descriptors are those of all fields, in the order of their names.
func descriptors(properties map[string]apiextensionsv1.JSONSchemaProps) []described {
	var all []described
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property := properties[name]
		all = append(all, described{name: name, kind: property.Type, SpecDescriptor: v1alpha1.SpecDescriptor{
			Path: name, DisplayName: words(name), Description: firstParagraph(property.Description),
		}})
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

// examples are the samples of the kinds that the operator owns, as JSON. Those
// that set the least come first: consoles begin a new object with the first one.
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
	var examples []map[string]any
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
	slices.SortStableFunc(examples, func(a, b map[string]any) int { return cmp.Compare(specSize(a), specSize(b)) })
	out, err := json.MarshalIndent(examples, "", "  ")
	return string(out), err
}

// specSize is how many fields of an object's spec are set.
func specSize(object map[string]any) int {
	spec, _, _ := unstructured.NestedMap(object, "spec")
	return len(spec)
}
