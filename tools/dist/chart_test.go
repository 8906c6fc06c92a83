package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// By default, charts render what kustomize makes, object by object: those that
// are checked in, and those that a release has of them.
func TestChartsRenderWhatKustomizeMakes(t *testing.T) {
	helm := pinnedHelm(t)
	for name, o := range map[string]options{
		"checked in": {repo: repo, operator: all, version: "0.0.0-dev", image: "fairlead:dev"},
		"released":   {repo: repo, operator: all, version: current, base: base},
	} {
		r, err := open(o)
		if err != nil {
			t.Fatal(err)
		}
		operators, err := r.installs()
		if err != nil {
			t.Fatal(err)
		}
		for _, operator := range operators {
			texts, err := r.texts(operator)
			if err != nil {
				t.Fatal(err)
			}
			chart := filepath.Join(repo, chartOf(operator))
			if name == "released" {
				chart = filepath.Join(out, "charts", texts.Chart+"-"+current+".tgz")
			}
			namespace := texts.Chart + "-system"
			for overlay, values := range map[string][]string{
				"default": nil,
				"prometheus": {
					"--set", "metrics.serviceMonitor.enabled=true", "--set", "metrics.prometheusRule.enabled=true",
					"--show-only", "templates/prometheus.yaml",
				},
				"policy":  {"--set", "admissionPolicy.enabled=true", "--show-only", "templates/policy.yaml"},
				"network": {"--set", "networkPolicy.enabled=true", "--show-only", "templates/networkpolicy.yaml"},
				"grafana": {"--set", "metrics.dashboards.enabled=true", "--show-only", "templates/grafana.yaml"},
				"namespaced": {
					"--set", "watchNamespaces={" + namespace + "}",
					"--set", "metrics.enabled=false", "--set", "userRoles=false", "--set", "crds.install=false",
				},
			} {
				t.Run(path.Join(name, operator, overlay), func(t *testing.T) {
					built, err := r.build(path.Join(configOf(operator), overlay), r.image)
					if err != nil {
						t.Fatal(err)
					}
					args := append([]string{"template", "release", chart, "--namespace", namespace}, values...)
					want := inChart(t, built, texts.Chart, namespace, r.version)
					if slices.Contains(values, "--show-only") {
						delete(want, "Lease/"+texts.Chart+"-leader") // not in that template
					}
					sameObjects(t, objectsByName(t, helm(t, args...)), want)
				})
			}
		}
	}
}

// inChart is what a chart is to make of kustomize's objects.
func inChart(t *testing.T, built []*unstructured.Unstructured, chart, namespace, version string) map[string]*unstructured.Unstructured {
	t.Helper()
	want := map[string]*unstructured.Unstructured{}
	set := func(object *unstructured.Unstructured, value any, fields ...string) {
		if err := unstructured.SetNestedField(object.Object, value, fields...); err != nil {
			t.Fatal(err)
		}
	}
	// Several charts can be in one namespace.
	selector := map[string]any{"app.kubernetes.io/name": chart, "control-plane": "controller-manager"}
	labels := func(object *unstructured.Unstructured) {
		set(object, "controller-manager", "metadata", "labels", "control-plane")
		set(object, "release", "metadata", "labels", "app.kubernetes.io/instance")
		set(object, "Helm", "metadata", "labels", "app.kubernetes.io/managed-by")
		set(object, chart+"-"+version, "metadata", "labels", "helm.sh/chart")
		unstructured.RemoveNestedField(object.Object, "metadata", "labels", componentLabel) // for kubectl -l
	}
	for _, object := range built {
		switch kind := object.GetKind(); kind {
		case "Namespace":
			continue // helm --create-namespace
		case "CustomResourceDefinition":
			set(object, "keep", "metadata", "annotations", "helm.sh/resource-policy")
		case "Deployment":
			labels(object)
			set(object, selector, "spec", "selector", "matchLabels")
			set(object, selector, "spec", "template", "metadata", "labels")
			containers, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "template", "spec", "containers")
			if err != nil {
				t.Fatal(err)
			}
			watched := containers.([]any)[0].(map[string]any)["env"].([]any)[0].(map[string]any)
			if watched["valueFrom"] != nil { // the namespace that it is in
				delete(watched, "valueFrom")
				watched["value"] = namespace
			}
		case "Service":
			labels(object)
			set(object, selector, "spec", "selector")
		case "ServiceMonitor":
			labels(object)
			set(object, selector, "spec", "selector", "matchLabels")
		case "NetworkPolicy":
			labels(object)
			set(object, selector, "spec", "podSelector", "matchLabels")
		case "ValidatingAdmissionPolicy": // for the release's account, and no other's of that name
			labels(object)
			object.SetName(object.GetName() + "-" + namespace)
			condition := "request.userInfo.?username.orValue('') == 'system:serviceaccount:" + namespace + ":" + chart + "-controller-manager'"
			set(object, []any{map[string]any{"name": "by-the-operator", "expression": condition}}, "spec", "matchConditions")
		case "ValidatingAdmissionPolicyBinding":
			labels(object)
			object.SetName(object.GetName() + "-" + namespace)
			set(object, object.GetName(), "spec", "policyName")
		case "PrometheusRule", "ConfigMap": // in kustomize's, the name is of the operator that it is about
			labels(object)
			set(object, chart, "metadata", "labels", "app.kubernetes.io/name")
		default:
			labels(object)
			// Releases in other namespaces have roles of their own.
			if strings.HasPrefix(kind, "Cluster") || strings.Contains(object.GetName(), "manager-role") {
				object.SetName(object.GetName() + "-" + namespace)
				if role, found, _ := unstructured.NestedString(object.Object, "roleRef", "name"); found {
					set(object, role+"-"+namespace, "roleRef", "name")
				}
			}
		}
		want[object.GetKind()+"/"+object.GetName()] = object
	}
	// Made by the manager elsewhere. Here it goes with the release.
	lease := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
	lease.SetName(chart + "-leader")
	lease.SetNamespace(namespace)
	lease.SetLabels(map[string]string{
		"app.kubernetes.io/name": chart, "app.kubernetes.io/part-of": "fairlead", versionLabel: version,
	})
	labels(lease)
	want["Lease/"+lease.GetName()] = lease
	return want
}

func sameObjects(t *testing.T, got, want map[string]*unstructured.Unstructured) {
	t.Helper()
	for name, object := range want {
		if got[name] == nil {
			t.Errorf("%s is not in the chart", name)
			continue
		}
		for part := range fieldsOf(object, got[name]) {
			if has, wants := got[name].Object[part], object.Object[part]; !reflect.DeepEqual(has, wants) {
				t.Errorf("%s: %s is\n%s\nwant\n%s", name, part, asYAML(t, has), asYAML(t, wants))
			}
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("kustomize does not make %s", name)
		}
	}
}

// fieldsOf are the names of all fields that one of the objects has.
func fieldsOf(objects ...*unstructured.Unstructured) map[string]bool {
	fields := map[string]bool{}
	for _, object := range objects {
		for field := range object.Object {
			fields[field] = true
		}
	}
	return fields
}

func asYAML(t *testing.T, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What people read of a chart is what they read of the bundle.
func TestChartsAreChecked(t *testing.T) {
	helm := pinnedHelm(t)
	r, err := open(options{repo: repo, operator: all, version: current, base: base})
	if err != nil {
		t.Fatal(err)
	}
	operators, err := r.installs()
	if err != nil {
		t.Fatal(err)
	}
	for _, operator := range operators {
		folder := filepath.Join(repo, chartOf(operator))
		helm(t, "lint", "--strict", folder)
		content, err := os.ReadFile(filepath.Join(folder, "Chart.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var chart struct {
			Name, Description, KubeVersion, Home string
			Keywords                             []string
			Maintainers                          []v1alpha1.Maintainer
			Annotations                          map[string]string
		}
		if err := yaml.Unmarshal(content, &chart); err != nil {
			t.Fatal(err)
		}
		texts, err := r.texts(operator)
		if err != nil {
			t.Fatal(err)
		}
		if chart.Name != texts.Chart || chart.Description != texts.Summary || !slices.Equal(chart.Keywords, texts.Keywords) ||
			chart.KubeVersion != ">="+texts.MinKubeVersion+"-0" || chart.Home != texts.Links[0].URL ||
			!slices.Equal(chart.Maintainers, texts.Maintainers) {
			t.Errorf("%s/Chart.yaml says something else than olm/package.yaml: %+v", chartOf(operator), chart)
		}
		if ran := chart.Annotations["fairlead.example.com/operator"]; ran != operator {
			t.Errorf("%s/Chart.yaml: the manager is to run %q", chartOf(operator), ran)
		}
	}
}

// A chart of a version that had none checked in has that version's CRDs and roles.
func TestChartsOfOlderVersions(t *testing.T) {
	helm := pinnedHelm(t)
	for _, file := range glob(t, "charts/*.tgz") {
		name := strings.TrimSuffix(filepath.Base(file), ".tgz")
		chart, version := name[:strings.LastIndex(name, "-")], name[strings.LastIndex(name, "-")+1:]
		if version == current {
			continue
		}
		r, err := open(options{repo: repo, operator: all, version: version, base: base})
		if err != nil {
			t.Fatal(err)
		}
		operator := all
		if chart != "fairlead" {
			operator = strings.TrimSuffix(chart, "-operator")
		}
		built, err := r.build(path.Join(configOf(operator), "default"), r.image)
		r.close()
		if err != nil {
			t.Fatal(err)
		}
		namespace := chart + "-system"
		want := inChart(t, built, chart, namespace, version)
		got := objectsByName(t, helm(t, "template", "release", file, "--namespace", namespace))
		for _, objects := range []map[string]*unstructured.Unstructured{got, want} {
			delete(objects, "Role/"+chart+"-leader-election-role") // today's
		}
		// Today's, too.
		manager := got["Deployment/"+chart+"-controller-manager"].Object
		unstructured.RemoveNestedField(manager, "spec", "template", "spec", "nodeSelector")
		removeVariable(t, manager, "AT_START_IMAGE")
		sameObjects(t, got, want)
	}
}

// removeVariable takes a variable from the environment of a Deployment's container.
func removeVariable(t *testing.T, deployment map[string]any, name string) {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(deployment, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("%d containers: %v", len(containers), err)
	}
	container := containers[0].(map[string]any)
	env, _ := container["env"].([]any)
	container["env"] = slices.DeleteFunc(env, func(v any) bool { return v.(map[string]any)["name"] == name })
	if err := unstructured.SetNestedSlice(deployment, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
}

// A released version's charts come from its commit, with what they have in common.
func TestChartsOfACommit(t *testing.T) {
	r := &release{options: options{repo: repo, version: current, operator: all}}
	defer r.close()
	var err error
	if r.tree, err = r.unpack("HEAD"); err != nil {
		t.Fatal(err)
	}
	operators, err := r.installs()
	if err != nil {
		t.Fatal(err)
	}
	for _, operator := range operators {
		chart, err := readFiles(filepath.Join(r.tree, chartOf(operator)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Chart.yaml", "values.yaml", "values.schema.json", "templates/manager.yaml"} {
			if len(chart[name].content) == 0 {
				t.Errorf("%s/%s is not in the commit's archive", chartOf(operator), name)
			}
		}
	}
}

// pinnedHelm runs the Helm of tools/helm and returns what it prints.
func pinnedHelm(t *testing.T) func(t *testing.T, args ...string) string {
	t.Helper()
	run := func(t *testing.T, program string, args ...string) string {
		t.Helper()
		cmd := command(program, args...)
		cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
		text, err := cmd.Output()
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s%s", err, failed.Stderr, text)
		}
		if err != nil {
			t.Fatalf("%s %v: %v", filepath.Base(program), args, err)
		}
		return string(text)
	}
	program := strings.TrimSpace(run(t, "go", "-C", "../helm", "tool", "-n", "helm"))
	return func(t *testing.T, args ...string) string { t.Helper(); return run(t, program, args...) }
}

// objectsByName are the objects of a manifest, none twice.
func objectsByName(t *testing.T, manifest string) map[string]*unstructured.Unstructured {
	t.Helper()
	objects := map[string]*unstructured.Unstructured{}
	for document := range strings.SplitSeq("\n"+manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		content, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if string(content) == "null" {
			continue
		}
		if err := object.UnmarshalJSON(content); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		name := object.GetKind() + "/" + object.GetName()
		if objects[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		objects[name] = object
	}
	return objects
}
