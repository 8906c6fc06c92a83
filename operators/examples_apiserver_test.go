//go:build apiserver

package operators

import (
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/internal/testkit"
)

// TestExamples: each is applied as kubectl does it, which refuses unknown fields, says first what it is for, is short, and
// stands in the index.
func TestExamples(t *testing.T) {
	server := testkit.Server(t)
	c, err := client.New(server.Config, client.Options{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d examples, want 20 or more: %v", len(files), err)
	}
	index := readFile(t, "../examples/README.md")
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "../examples/"), func(t *testing.T) {
			t.Parallel()
			manifest := readFile(t, file)
			if n := strings.Count(manifest, "\n"); n >= 40 || !strings.HasPrefix(manifest, "# ") {
				t.Errorf("it has %d lines, want fewer than 40, the first of which says what it is for", n)
			}
			if !strings.Contains(index, "("+strings.TrimPrefix(file, "../examples/")+")") {
				t.Error("examples/README.md has no link to it")
			}
			namespace := server.NewNamespace(t)
			for _, document := range strings.Split(manifest, "\n---\n") {
				obj := &unstructured.Unstructured{}
				if err := yaml.UnmarshalStrict([]byte(document), &obj.Object); err != nil {
					t.Fatal(err)
				}
				obj.SetNamespace(namespace)
				if err := c.Create(t.Context(), obj); err != nil {
					t.Errorf("%s %s: %v", obj.GetKind(), obj.GetName(), err)
				}
			}
		})
	}
}
