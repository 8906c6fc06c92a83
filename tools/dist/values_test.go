package main

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// everything switches on what a chart can have.
var everything = []string{
	"--set", "metrics.serviceMonitor.enabled=true", "--set", "metrics.prometheusRule.enabled=true", "--set", "metrics.dashboards.enabled=true",
	"--set", "admissionPolicy.enabled=true", "--set", "networkPolicy.enabled=true", "--set", "crds.install=false",
}

// With helm upgrade --reuse-values, a chart has the values of the release before it in place of its own. Those that are
// not there, whichever they are, count as their defaults.
func TestChartsTakeTheValuesOfOlderVersions(t *testing.T) {
	helm := pinnedHelm(t)
	r, err := open(options{repo: repo, operator: all, version: "0.0.0-dev", image: "fairlead:dev"})
	if err != nil {
		t.Fatal(err)
	}
	released, err := readReleases(filepath.Join(repo, "hack", "releases"))
	if err != nil {
		t.Fatal(err)
	}
	installs, err := r.installs()
	if err != nil {
		t.Fatal(err)
	}
	for _, operator := range installs {
		today := chartValues(t, operator)
		values := map[string]map[string]any{"no values": {}}
		for _, p := range released {
			values[p.version] = releasedValues(t, r, p.commit, today)
		}
		if operator == r.mustOperators(t)[0] { // the templates are the same for all
			maps.Copy(values, withoutOne(today, ""))
		}
		render := chartWith(t, helm, operator)
		for _, more := range [][]string{nil, everything} {
			want := render(t, today, more...)
			for name, have := range values {
				t.Run(path.Join(operator, name), func(t *testing.T) {
					sameObjects(t, objectsByName(t, render(t, have, more...)), objectsByName(t, want))
				})
			}
		}
	}
}

// What somebody takes out of resources or labels is not put back, and nodes are Linux's besides what is selected.
func TestChartsKeepWhatIsTakenOut(t *testing.T) {
	helm := pinnedHelm(t)
	manifest := helm(t, "template", "release", filepath.Join(repo, chartOf(all)), "--set", "crds.install=false",
		"--set", "resources.limits=null", "--set", "userRoles=false", "--set", "metrics.dashboards.enabled=true",
		"--set", "metrics.dashboards.labels.grafana_dashboard=null", "--set", "nodeSelector.disk=ssd")
	for _, text := range []string{"limits:", "grafana_dashboard:", "rbac.authorization.k8s.io/aggregate-to"} {
		if strings.Contains(manifest, text) {
			t.Errorf("%s is there", text)
		}
	}
	if want := "nodeSelector:\n        disk: ssd\n        kubernetes.io/os: linux\n"; !strings.Contains(manifest, want) {
		t.Errorf("there is no %s", want)
	}
	manifest = helm(t, "template", "release", filepath.Join(repo, chartOf(all)), "--set", `nodeSelector.kubernetes\.io/os=other`)
	if want := "nodeSelector:\n        kubernetes.io/os: other\n"; !strings.Contains(manifest, want) {
		t.Errorf("there is no %s", want)
	}
}

// TestTemplatesKnowTheDefaults: whichever template Helm takes first.
func TestTemplatesKnowTheDefaults(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repo, chartOf(all), "templates", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(content); path.Ext(file) != ".tpl" && strings.Contains(text, ".Values.") && !strings.HasPrefix(text, `{{- include "defaults" . -}}`) {
			t.Errorf("%s reads values and does not begin with their defaults", file)
		}
	}
}

func (r *release) mustOperators(t *testing.T) []string {
	t.Helper()
	operators, err := r.operators()
	if err != nil || len(operators) == 0 {
		t.Fatal(operators, err)
	}
	return operators
}

// chartWith renders an operator's chart with other values than those of its values.yaml.
func chartWith(t *testing.T, helm func(*testing.T, ...string) string, operator string) func(*testing.T, map[string]any, ...string) string {
	t.Helper()
	folder := t.TempDir()
	content, err := readFiles(filepath.Join(repo, chartOf(operator)))
	if err != nil {
		t.Fatal(err)
	}
	put := func(t *testing.T, name string, content []byte) {
		t.Helper()
		name = filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range content {
		put(t, name, file.content)
	}
	return func(t *testing.T, values map[string]any, args ...string) string {
		t.Helper()
		put(t, "values.yaml", []byte(asYAML(t, values)))
		return helm(t, append([]string{"template", "release", folder, "--namespace", "n"}, args...)...)
	}
}

// chartValues are those of an operator's values.yaml.
func chartValues(t *testing.T, operator string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repo, chartOf(operator), "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return asValues(t, string(content))
}

// releasedValues are those that a released version's charts had, with today's where the build put in something. Up to
// 0.0.2 the charts' source was elsewhere, and its placeholders were [[.Name]].
func releasedValues(t *testing.T, r *release, commit string, today map[string]any) map[string]any {
	t.Helper()
	if text, err := r.git("show", commit+":"+chartOf(all)+"/values.yaml"); err == nil {
		return asValues(t, text)
	}
	text, err := r.git("show", commit+":tools/dist/chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	image := today["image"].(map[string]any)
	resources := "  " + strings.ReplaceAll(asYAML(t, today["resources"]), "\n", "\n  ") + "\n"
	return asValues(t, strings.NewReplacer("[[.Repository]]", image["repository"].(string), "[[.Tag]]", image["tag"].(string), "[[.Resources]]", resources).Replace(text))
}

func asValues(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// withoutOne are the values without one of them each, at any depth, but for what is within resources and labels.
func withoutOne(values map[string]any, under string) map[string]map[string]any {
	all := map[string]map[string]any{}
	for name, value := range values {
		rest := maps.Clone(values)
		delete(rest, name)
		all["without "+under+name] = rest
		below, is := value.(map[string]any)
		if !is || name == "resources" || name == "labels" {
			continue
		}
		for title, less := range withoutOne(below, under+name+".") {
			rest := maps.Clone(values)
			rest[name] = less
			all[title] = rest
		}
	}
	return all
}
