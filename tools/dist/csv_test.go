package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// The rules of a ClusterServiceVersion, those that no tool checks above all.

func TestCSV(t *testing.T) {
	byDigest := regexp.MustCompile("^" + regexp.QuoteMeta(base) + "@sha256:[0-9a-f]{64}$")
	eachBundle(t, func(t *testing.T, dir string, b *manifests.Bundle) {
		csv, version := b.CSV, strings.TrimPrefix(filepath.Base(dir), "v")
		// No tool checks that the name and the version agree.
		if !strings.HasSuffix(csv.Name, ".v"+csv.Spec.Version.String()) || csv.Spec.Version.String() != version {
			t.Errorf("name %s, version %s, folder %s", csv.Name, csv.Spec.Version, version)
		}
		for _, name := range []string{csv.Name, csv.Spec.Replaces} {
			if problems := append(kvalidation.IsDNS1123Subdomain(name), kvalidation.IsValidLabelValue(name)...); name != "" && len(problems) > 0 {
				t.Errorf("%s: %v", name, problems)
			}
		}
		if _, err := semver.Parse(csv.Spec.MinKubeVersion); err != nil {
			t.Errorf("minKubeVersion %q: %v", csv.Spec.MinKubeVersion, err)
		}
		for _, mode := range []v1alpha1.InstallModeType{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
			if !slices.Contains(csv.Spec.InstallModes, v1alpha1.InstallMode{Type: mode, Supported: true}) {
				t.Errorf("install mode %s is not supported", mode)
			}
		}
		annotations := []string{"containerImage", "createdAt", "support", "description", "capabilities", "categories",
			"operatorframework.io/suggested-namespace"}
		if version == current { // those of a released version are what they were
			annotations = append(annotations, "repository")
			for _, feature := range []string{"disconnected", "fips-compliant", "proxy-aware", "tls-profiles", "token-auth-aws",
				"token-auth-azure", "token-auth-gcp", "cnf", "cni", "csi"} {
				annotations = append(annotations, "features.operators.openshift.io/"+feature)
			}
		}
		for _, annotation := range annotations {
			if csv.Annotations[annotation] == "" {
				t.Errorf("no annotation %s", annotation)
			}
		}
		if len(csv.Spec.Icon) != 1 || csv.Spec.Icon[0].Data == "" || csv.Spec.Description == "" || csv.Spec.Provider.Name == "" ||
			len(csv.Spec.Links) == 0 || len(csv.Spec.Maintainers) == 0 || len(csv.Spec.Keywords) == 0 {
			t.Error("icon, description, provider, links, maintainers and keywords are to be there")
		}
		image := csv.Annotations["containerImage"]
		if !slices.Contains(csv.Spec.RelatedImages, v1alpha1.RelatedImage{Name: "manager", Image: image}) || !byDigest.MatchString(image) {
			t.Errorf("image %s is not by digest, or not among the related images %v", image, csv.Spec.RelatedImages)
		}
		for _, related := range csv.Spec.RelatedImages {
			if _, tag := splitImage(related.Image); version == current && !strings.HasSuffix(related.Image, ":"+tag) {
				t.Errorf("related image %s has neither tag nor digest", related.Image)
			}
		}

		deployments := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
		if len(deployments) != 1 {
			t.Fatalf("%d deployments", len(deployments))
		}
		pod := deployments[0].Spec.Template
		container := pod.Spec.Containers[0]
		watch, images := "", map[string]string{}
		for _, variable := range container.Env {
			if strings.HasSuffix(variable.Name, "_IMAGE") {
				images[variable.Name] = variable.Value
			}
			if variable.Name == "WATCH_NAMESPACE" && variable.ValueFrom != nil {
				watch = variable.ValueFrom.FieldRef.FieldPath
			}
		}
		if watch != "metadata.annotations['olm.targetNamespaces']" {
			t.Errorf("WATCH_NAMESPACE is from %q", watch)
		}
		variables := map[string]string{"etcd": "ETCD_AGENT_IMAGE"}
		if version == current { // what is released has no such program
			variables["at"] = "AT_START_IMAGE"
		}
		for operator, variable := range variables {
			if is := slices.Contains(container.Args, operator); is && images[variable] != image || !is && images[variable] != "" {
				t.Errorf("%s is %q, the manager's image %q", variable, images[variable], image)
			}
		}
		if container.Image != image || len(container.Resources.Requests) == 0 {
			t.Errorf("image %s, requests %v", container.Image, container.Resources.Requests)
		}
		for key, value := range deployments[0].Spec.Selector.MatchLabels {
			if pod.Labels[key] != value {
				t.Errorf("the selector %s=%s does not select the pod", key, value)
			}
		}
		for _, permission := range append(csv.Spec.InstallStrategy.StrategySpec.Permissions, csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions...) {
			if permission.ServiceAccountName != pod.Spec.ServiceAccountName || len(permission.Rules) == 0 {
				t.Errorf("permissions of %q, the pod runs as %q", permission.ServiceAccountName, pod.Spec.ServiceAccountName)
			}
		}
	})
}

// What consoles show, and the scorecard asks for.
func TestOwnedCRDsExamplesAndDescriptors(t *testing.T) {
	eachBundle(t, func(t *testing.T, _ string, b *manifests.Bundle) {
		schemas := map[string]*apiextensionsv1.JSONSchemaProps{} // by group, kind and version
		for _, crd := range b.V1CRDs {
			for _, version := range crd.Spec.Versions {
				schemas[crd.Spec.Group+"/"+version.Name+"/"+crd.Spec.Names.Kind] = version.Schema.OpenAPIV3Schema
			}
		}
		var examples []map[string]any
		if err := json.Unmarshal([]byte(b.CSV.Annotations["alm-examples"]), &examples); err != nil {
			t.Fatal(err)
		}
		if spec, _, _ := unstructured.NestedMap(examples[0], "spec"); len(spec) > 2 {
			t.Errorf("consoles begin with the first example, which is not the minimal one: %v", examples[0])
		}
		hasExample := map[string]bool{}
		least := map[string]int{} // fields of the first example of a kind
		specKeys := map[string]map[string]bool{}
		for _, example := range examples {
			object := unstructured.Unstructured{Object: example}
			id := object.GetAPIVersion() + "/" + object.GetKind()
			if schemas[id] == nil {
				t.Errorf("an example of %s, which the bundle has no CRD for", id)
				continue
			}
			spec, _, _ := unstructured.NestedMap(example, "spec")
			if !hasExample[id] {
				hasExample[id], least[id] = true, len(spec)
			}
			if len(spec) < least[id] {
				t.Errorf("consoles begin with the first example of %s, which is not the minimal one: %s has less", id, object.GetName())
			}
			if specKeys[id] == nil {
				specKeys[id] = map[string]bool{}
			}
			for key := range spec {
				specKeys[id][key] = true
			}
			unknownFields(t, id, example, schemas[id])
		}
		owned := map[string]bool{}
		for _, description := range b.CSV.Spec.CustomResourceDefinitions.Owned {
			_, group, _ := strings.Cut(description.Name, ".")
			id := group + "/" + description.Version + "/" + description.Kind
			owned[id] = true
			if schemas[id] == nil {
				t.Errorf("owned %s is not in the bundle", id)
				continue
			}
			if !hasExample[id] || description.Description == "" || description.DisplayName == "" || len(description.Resources) == 0 {
				t.Errorf("%s: an example, a name, a description and its resources are to be there", id)
			}
			var spec, status []string
			for _, descriptor := range description.SpecDescriptors {
				spec = append(spec, descriptor.Path)
			}
			for _, descriptor := range description.StatusDescriptors {
				status = append(status, descriptor.Path)
			}
			for key := range specKeys[id] {
				if !slices.Contains(spec, key) {
					t.Errorf("%s: no descriptor for spec.%s", id, key)
				}
			}
			if len(status) == 0 {
				t.Errorf("%s: no descriptors of its status", id)
			}
		}
		if missing := slices.Collect(maps.Keys(schemas)); len(owned) != len(schemas) {
			t.Errorf("owned %v, in the bundle %v", owned, missing)
		}
	})
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"startingDeadlineSeconds": "Starting deadline seconds", "podUID": "Pod UID", "url": "URL", "httpsNodePort": "Https node port",
		"ttlSecondsAfterFinished": "TTL seconds after finished", "URLPath": "URL path", "x": "X",
	} {
		if got := words(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// unknownFields fails for fields that the schema does not have.
func unknownFields(t *testing.T, path string, value any, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			property, ok := schema.Properties[name]
			switch {
			case ok:
				if path+"."+name != "metadata" && name != "metadata" {
					unknownFields(t, path+"."+name, field, &property)
				}
			case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
				unknownFields(t, path+"."+name, field, schema.AdditionalProperties.Schema)
			case schema.XPreserveUnknownFields == nil && schema.Type == "object" && len(schema.Properties) > 0:
				t.Errorf("%s.%s is not in the schema", path, name)
			}
		}
	case []any:
		for _, item := range value {
			if schema.Items != nil && schema.Items.Schema != nil {
				unknownFields(t, path+"[]", item, schema.Items.Schema)
			}
		}
	}
}
