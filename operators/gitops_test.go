package operators

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestArgoCDKnowsAllKinds: what users put into Argo CD's configuration is the health check that the simulations try,
// for each kind, under the key that Argo CD looks for.
func TestArgoCDKnowsAllKinds(t *testing.T) {
	var patch corev1.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "config/argocd/argocd-cm.yaml")), &patch); err != nil {
		t.Fatal(err)
	}
	script := readFile(t, "config/argocd/health.lua")
	files, err := filepath.Glob("*/config/crd/*_*.yaml")
	if err != nil || len(files) != len(patch.Data) {
		t.Fatalf("%d CRDs and %d health checks, error %v", len(files), len(patch.Data), err)
	}
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(readFile(t, file)), &crd); err != nil {
			t.Fatal(err)
		}
		key := "resource.customizations.health." + crd.Spec.Group + "_" + crd.Spec.Names.Kind
		if patch.Data[key] != script {
			t.Errorf("%s is not health.lua but %q", key, patch.Data[key])
		}
	}
}
