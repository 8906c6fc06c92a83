package operators

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// takenNames are short names that others have: Kubernetes, OpenShift (mc, mcp), Argo CD (app), Flux (hr, ks), Istio (vs,
// gw), cert-manager (cert, cr, issuer), Cluster API (cl, ma, md, ms). kubectl takes any one of two that are the same.
var takenNames = strings.Fields(`cs cm ep ev limits ns no pvc pv po rc quota sa svc crd ds deploy rs sts hpa cj csr ing netpol
	pdb psp pc sc ws mc mcp app apps appset hr ks vs gw cert cr cl ma md ms es etcds`)

// TestNamesForKubectl: kubectl get fairlead lists all kinds, and each but At, which is short enough, has a short name of
// its own. docs/versions.md has them.
func TestNamesForKubectl(t *testing.T) {
	files, err := filepath.Glob("*/config/crd/*_*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d CRDs, error %v", len(files), err)
	}
	page, seen := readFile(t, "../docs/versions.md"), slices.Clone(takenNames)
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(readFile(t, file)), &crd); err != nil {
			t.Fatal(err)
		}
		names := crd.Spec.Names
		if !slices.Equal(names.Categories, []string{"fairlead"}) {
			t.Errorf("%s has the categories %q", file, names.Categories)
		}
		if names.Kind == "At" {
			continue
		}
		if len(names.ShortNames) != 1 {
			t.Errorf("%s has the short names %q, want one", file, names.ShortNames)
		}
		for _, short := range names.ShortNames {
			if slices.Contains(seen, short) {
				t.Errorf("%s: the short name %q is taken", file, short)
			}
			seen = append(seen, short)
			if !strings.Contains(page, "`"+short+"`") {
				t.Errorf("docs/versions.md does not have %q", short)
			}
		}
	}
}
