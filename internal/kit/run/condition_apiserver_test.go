//go:build apiserver

package run

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
)

// operatorConditionCRD is OLM's, without its schema.
func operatorConditionCRD() *apiextensionsv1.CustomResourceDefinition {
	keep := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "operatorconditions.operators.coreos.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: operatorConditionKind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "operatorconditions", Singular: "operatorcondition", Kind: operatorConditionKind.Kind, ListKind: "OperatorConditionList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: operatorConditionKind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}},
			}},
		},
	}
}

// The condition Upgradeable is false exactly while an operator is busy, and is
// written only when that changes.
func TestUpgradeableIsFalseWhileAnOperatorIsBusy(t *testing.T) {
	server := testkit.Server(t)
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), operatorConditionCRD()); err != nil {
		t.Fatal(err)
	}
	condition := &unstructured.Unstructured{}
	condition.SetGroupVersionKind(operatorConditionKind)
	condition.SetNamespace(server.NewNamespace(t))
	condition.SetName("x-operator.v0.0.2")
	eventually(t, "create the OperatorCondition", func() error { return c.Create(t.Context(), condition.DeepCopy()) })

	reason, problem := "", error(nil)
	r := &conditionReporter{
		key: client.ObjectKeyFromObject(condition), writer: c, live: c, cached: c, log: logr.Discard(),
		operators: []Operator{{Name: "idle"}, {Name: "x", Busy: func(context.Context, client.Reader) (string, error) { return reason, problem }}},
	}
	version := ""
	wants := func(what, status, message string, write bool) {
		t.Helper()
		if err := r.report(t.Context()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := c.Get(t.Context(), r.key, condition); err != nil {
			t.Fatal(err)
		}
		all, _, _ := unstructured.NestedSlice(condition.Object, "spec", "conditions")
		if len(all) != 1 {
			t.Fatalf("%s: conditions %v", what, all)
		}
		got := all[0].(map[string]any)
		if got["type"] != "Upgradeable" || got["status"] != status || message != "" && got["message"] != message {
			t.Errorf("%s: %v, want status %s and message %q", what, got, status, message)
		}
		if wrote := condition.GetResourceVersion() != version; wrote != write {
			t.Errorf("%s: written: %t, want %t", what, wrote, write)
		}
		version = condition.GetResourceVersion()
	}
	wants("at first", "True", "", true)
	wants("still idle", "True", "", false)
	reason = "a warm upgrade of ns/pool is under way"
	wants("busy", "False", reason, true)
	wants("still busy", "False", reason, false)

	problem = errors.New("the cache is not filled")
	if err := r.report(t.Context()); !errors.Is(err, problem) {
		t.Errorf("an operator that does not know whether it is busy: %v", err)
	}
	reason, problem = "", nil
	wants("idle again", "True", "", true)

	// The next leader finds the condition as it is.
	r = &conditionReporter{key: r.key, writer: c, live: c, cached: c, log: logr.Discard()}
	wants("another leader", "True", "", false)
}
