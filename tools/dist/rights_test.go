package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The rights in a bundle are those of the same version's YAML, in the places
// that OLM needs them in: permissions become ClusterRoles in an install for all
// namespaces, clusterPermissions always do, and a Role of the bundle never does.
// What real installs get is compared in test/e2e/install.
func TestRightsOfBundles(t *testing.T) {
	eachBundle(t, func(t *testing.T, dir string, b *manifests.Bundle) {
		if !strings.HasSuffix(dir, current) {
			return // the YAML that is there is the newest version's
		}
		operator := strings.TrimSuffix(filepath.Base(filepath.Dir(dir)), "-operator")
		yamls := objectsIn(t, filepath.Join(out, "install-"+operator+".yaml"))
		name := operator + "-operator-"
		strategy := b.CSV.Spec.InstallStrategy.StrategySpec
		var permissions, clusterPermissions []rbacv1.PolicyRule
		for _, permission := range strategy.Permissions {
			permissions = append(permissions, permission.Rules...)
		}
		for _, permission := range strategy.ClusterPermissions {
			clusterPermissions = append(clusterPermissions, permission.Rules...)
		}
		sameRules(t, "permissions", permissions, rulesOf(t, yamls["ClusterRole/"+name+"manager-role"]))
		always := rulesOf(t, yamls["ClusterRole/"+name+"metrics-auth-role"])
		if role := yamls["ClusterRole/"+name+"nodes-role"]; role != nil {
			always = append(always, rulesOf(t, role)...)
		}
		sameRules(t, "clusterPermissions", clusterPermissions, always)

		role := name + "leader-election-role"
		bundled := map[string]*unstructured.Unstructured{}
		for _, object := range b.Objects {
			bundled[object.GetKind()+"/"+object.GetName()] = object
		}
		sameRules(t, role, rulesOf(t, bundled["Role/"+role]), rulesOf(t, yamls["Role/"+role]))
		binding := bundled["RoleBinding/"+name+"leader-election-rolebinding"]
		if binding == nil {
			t.Fatal("the leader's Role is not bound")
		}
		subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
		account := strategy.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName
		if len(subjects) != 1 || subjects[0].(map[string]any)["name"] != account || subjects[0].(map[string]any)["namespace"] != nil {
			t.Errorf("bound to %v, want %s of the same namespace, whichever that is", subjects, account)
		}
	})
}

func objectsIn(t *testing.T, file string) map[string]*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]*unstructured.Unstructured{}
	for document := range strings.SplitSeq("\n"+string(content), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		objects[object.GetKind()+"/"+object.GetName()] = object
	}
	return objects
}

func rulesOf(t *testing.T, role *unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	if role == nil {
		t.Fatal("the role is not there")
	}
	text, err := json.Marshal(role.Object["rules"])
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	if err := json.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	return rules
}

// sameRules compares right by right, and finds what is there twice.
func sameRules(t *testing.T, where string, got, want []rbacv1.PolicyRule) {
	t.Helper()
	has, wants := rights(got), rights(want)
	if len(wants) == 0 || !slices.Equal(has, wants) {
		t.Errorf("%s: the rights are\n%v\nwant\n%v", where, has, wants)
	}
	if twice := slices.Compact(slices.Clone(has)); len(twice) != len(has) {
		t.Errorf("%s: a right is there twice: %v", where, has)
	}
}

// rights are rules as single rights, sorted.
func rights(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					all = append(all, fmt.Sprintf("%s %s %s %v", verb, cmp.Or(group, "core"), resource, rule.ResourceNames))
				}
			}
			for _, url := range rule.NonResourceURLs {
				all = append(all, verb+" "+url)
			}
		}
	}
	slices.Sort(all)
	return all
}
