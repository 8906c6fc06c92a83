package standalone

import (
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
)

// CheckRights compares an operator's role, config/rbac/role.yaml, with what its
// kinds need, and others of which the test says why: a right that lacks and one too
// many are both errors.
func CheckRights(t *testing.T, operator run.Operator, others loop.Rights, kinds ...interface {
	Rights(*runtime.Scheme) (loop.Rights, error)
}) {
	t.Helper()
	want := loop.Rights{}
	for _, kind := range kinds {
		rights, err := kind.Rights(Scheme(operator))
		if err != nil {
			t.Fatal(err)
		}
		for what, verbs := range rights {
			want.Add(what, verbs...)
		}
	}
	for what, verbs := range others {
		want.Add(what, verbs...)
	}

	data, err := os.ReadFile("config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(data, &role); err != nil {
		t.Fatal(err)
	}
	have := loop.Rights{}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if group != "" {
					resource += "." + group
				}
				have.Add(resource, rule.Verbs...)
			}
		}
	}
	for what, verbs := range want {
		if !slices.Equal(have[what], verbs) {
			t.Errorf("%s: the role allows %v, and %v is needed", what, have[what], verbs)
		}
		delete(have, what)
	}
	for what, verbs := range have {
		t.Errorf("%s: the role allows %v, and nothing is needed", what, verbs)
	}
}
