package testkit

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// SpecCase is a spec as users write it, and what the API server says of it.
type SpecCase struct {
	// Spec is the inside of the braces of a YAML object.
	Spec string
	// Want is a part of the refusal; empty if the spec is valid.
	Want string
}

// CheckSpecs puts specs to the API server, for each of the kinds, as kubectl does:
// a field that it does not know is refused. Nothing is stored.
func CheckSpecs(t *testing.T, cases map[string]SpecCase, kinds ...schema.GroupVersionKind) {
	t.Helper()
	server := Server(t)
	namespace := server.NewNamespace(t)
	c, err := client.New(server.Config, client.Options{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, kind := range kinds {
				obj := &unstructured.Unstructured{}
				manifest := fmt.Sprintf("{metadata: {name: x, namespace: %s}, spec: {%s}}", namespace, tc.Spec)
				if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
					t.Fatalf("%v: %s", err, manifest)
				}
				obj.SetGroupVersionKind(kind)
				err := c.Create(t.Context(), obj, client.DryRunAll)
				switch {
				case tc.Want == "" && err != nil:
					t.Errorf("%s: refused: %v", kind.GroupVersion(), err)
				case tc.Want != "" && err == nil:
					t.Errorf("%s: accepted, want a refusal with %q", kind.GroupVersion(), tc.Want)
				case tc.Want != "" && !strings.Contains(err.Error(), tc.Want):
					t.Errorf("%s: refused with\n%v\nwant %q", kind.GroupVersion(), err, tc.Want)
				}
			}
		})
	}
}
