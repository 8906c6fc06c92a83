//go:build e2e

package install

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// The rights of every install, one by one, are those that the YAML gives. What
// OLM makes of the bundles is compared where OLM runs.

// right is one verb on one resource, in a namespace or everywhere.
type right struct{ scope, verb, group, resource, name string }

func (r right) String() string {
	return strings.TrimSpace(fmt.Sprintf("in %s: %s %s/%s %s", r.scope, r.verb, r.group, r.resource, r.name))
}

type rights map[right]bool

// without are the rights that none of the others have: what is everywhere is
// in every namespace.
func (r rights) without(others ...rights) []right {
	var left []right
	for one := range r {
		everywhere := one
		everywhere.scope = "*"
		if !slices.ContainsFunc(others, func(other rights) bool { return other[one] || other[everywhere] }) {
			left = append(left, one)
		}
	}
	slices.SortFunc(left, func(a, b right) int { return strings.Compare(a.String(), b.String()) })
	return left
}

// object is a role, a binding, or anything else.
type object struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Rules    []rbacv1.PolicyRule
	Subjects []rbacv1.Subject
	RoleRef  rbacv1.RoleRef
}

func objectsFrom(t *testing.T, text string) []object {
	t.Helper()
	var all []object
	decoder := json.NewDecoder(strings.NewReader(text))
	for decoder.More() {
		var list struct {
			object
			Items []object
		}
		if err := decoder.Decode(&list); err != nil {
			t.Fatal(err)
		}
		all = append(append(all, list.object), list.Items...)
	}
	return all
}

// clusterObjects are the cluster's roles and bindings.
func clusterObjects(t *testing.T) []object {
	t.Helper()
	return objectsFrom(t, kubectl(t, "get", "clusterroles,clusterrolebindings,roles,rolebindings", "-A", "-o", "json"))
}

// manifestObjects are those of a manifest.
func manifestObjects(t *testing.T, manifest string) []object {
	t.Helper()
	text, err := try(manifest, "kubectl", "create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	return objectsFrom(t, text)
}

// rightsOf are those that a service account has by roles and bindings.
func rightsOf(objects []object, namespace, account string) rights {
	has := rights{}
	for _, binding := range objects {
		scope := binding.Metadata.Namespace
		if binding.Kind == "ClusterRoleBinding" {
			scope = "*"
		}
		bound := slices.ContainsFunc(binding.Subjects, func(subject rbacv1.Subject) bool {
			in := subject.Namespace
			if in == "" {
				in = binding.Metadata.Namespace
			}
			return subject.Kind == "ServiceAccount" && subject.Name == account && in == namespace
		})
		for _, role := range objects {
			if bound && role.Kind == binding.RoleRef.Kind && role.Metadata.Name == binding.RoleRef.Name &&
				(role.Kind == "ClusterRole" || role.Metadata.Namespace == binding.Metadata.Namespace) {
				has.add(scope, role.Rules)
			}
		}
	}
	return has
}

func (r rights) add(scope string, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				r[right{scope, verb, "", url, ""}] = true
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						r[right{scope, verb, group, resource, name}] = true
					}
				}
			}
		}
	}
}

// rightsIn are the rights that the YAML gives for some namespaces: the
// operator's role there, the leader's role where it is installed, and the
// questions of the metrics server.
func rightsIn(t *testing.T, operator string, watched []string) rights {
	t.Helper()
	want := rights{}
	for _, role := range manifestFile(t, current.yaml(operator)) {
		switch {
		case strings.HasSuffix(role.Metadata.Name, "manager-role"):
			for _, namespace := range watched {
				want.add(namespace, role.Rules)
			}
		case strings.HasSuffix(role.Metadata.Name, "leader-election-role"):
			want.add(namespaceOf(operator), role.Rules)
		case strings.HasSuffix(role.Metadata.Name, "metrics-auth-role"),
			strings.HasSuffix(role.Metadata.Name, "nodes-role") && slices.Equal(watched, []string{"*"}): // others lack it
			want.add("*", role.Rules)
		}
	}
	return want
}

func manifestFile(t *testing.T, file string) []object {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return manifestObjects(t, string(content))
}

func TestRightsByYAMLAndByHelm(t *testing.T) {
	for _, operator := range append(slices.Clone(operators), "all") {
		account := nameOf(operator) + "-controller-manager"
		same := func(way string, objects []object, namespace string, want rights) {
			has := rightsOf(objects, namespace, account)
			if more, less := has.without(want), want.without(has); len(has) == 0 || len(more)+len(less) > 0 {
				t.Errorf("%s, %s: more rights than by YAML: %v, fewer: %v", operator, way, more, less)
			}
		}
		onCluster := rightsIn(t, operator, nil)
		for one := range onCluster {
			if one.scope != "*" {
				delete(onCluster, one)
			}
		}
		own := namespaceOf(operator)
		withoutMetrics := func(watched ...string) rights {
			want := rightsIn(t, operator, watched)
			maps.DeleteFunc(want, func(one right, _ bool) bool { return onCluster[one] })
			return want
		}
		template := func(values ...string) []object {
			return manifestObjects(t, helm(t, append([]string{"template", nameOf(operator), current.chart(operator), "--namespace", own}, values...)...))
		}

		same("YAML", manifestFile(t, current.yaml(operator)), own, rightsIn(t, operator, []string{"*"}))
		namespaced := filepath.Join(current.dir, strings.Replace(filepath.Base(current.yaml(operator)), "install", "install-namespaced", 1))
		same("YAML for one namespace", manifestFile(t, namespaced), own, withoutMetrics(own))
		same("Helm", template(), own, rightsIn(t, operator, []string{"*"}))
		same("Helm for some namespaces", template("--set", "watchNamespaces={a,b}"), own, rightsIn(t, operator, []string{"a", "b"}))
		same("Helm for some namespaces without metrics", template("--set", "watchNamespaces={a,b}", "--set", "metrics.enabled=false"),
			own, withoutMetrics("a", "b"))
	}
}
