package main

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// everything switches on what a chart can have.
var everything = []string{
	"--set", "metrics.serviceMonitor.enabled=true", "--set", "metrics.prometheusRule.enabled=true", "--set", "metrics.dashboards.enabled=true",
	"--set", "metrics.podMonitor.enabled=true", "--set", "admissionPolicy.enabled=true", "--set", "networkPolicy.enabled=true", "--set", "crds.install=false",
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
		values := map[string]map[string]any{}
		for _, p := range released {
			values[p.version] = releasedValues(t, r, p.commit, today)
		}
		if operator == r.mustOperators(t)[0] { // the templates are the same for all
			for _, later := range laterValues(t) {
				values["without "+later] = without(t, today, later)
			}
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

// TestNullRemovesADefault: as everywhere in Helm, also when it is stored and comes back with --reuse-values.
func TestNullRemovesADefault(t *testing.T) {
	helm := pinnedHelm(t)
	today := chartValues(t, all)
	render := chartWith(t, helm, all)
	for _, tc := range []struct {
		value        string
		more         []string
		gone, stands string
	}{
		{value: "replicas", gone: "replicas:"},
		{value: "image.tag", stands: "fairlead:v0.0.0-dev"},
		{value: "image.pullPolicy", gone: "imagePullPolicy:"},
		{value: "watchNamespaces", stands: "kind: ClusterRoleBinding"},
		{value: "crds", gone: "kind: CustomResourceDefinition"},
		{value: "crds.keep", gone: "helm.sh/resource-policy"},
		{value: "metrics.enabled", gone: "metrics-reader", stands: "--metrics-bind-address=0"},
		{value: "metrics", gone: "metrics-reader", stands: "--metrics-bind-address=0"},
		{value: "metrics.dashboards.labels", more: []string{"--set", "metrics.dashboards.enabled=true"}, gone: "grafana_dashboard:"},
		{value: "metrics.dashboards.labels.grafana_dashboard", more: []string{"--set", "metrics.dashboards.enabled=true"}, gone: "grafana_dashboard:"},
		{value: "metrics.serviceMonitor", gone: "kind: ServiceMonitor"},
		{value: "networkPolicy", gone: "kind: NetworkPolicy"},
		{value: "nodesRole", gone: "nodes-role"},
		{value: "userRoles", gone: "rbac.authorization.k8s.io/aggregate-to"},
		{value: "extraArgs", stands: "- all"},
		{value: "resources", gone: "limits:", stands: "resources:\n            {}"},
		{value: "resources.limits", gone: "limits:", stands: "requests:"},
		{value: "resources.requests.cpu", gone: "cpu:", stands: "memory: 64Mi"},
		{value: "podLabels", stands: "kind: Deployment"},
		{value: "nodeSelector", stands: "kubernetes.io/os: linux"},
	} {
		t.Run(tc.value, func(t *testing.T) {
			args := append([]string{"--set", tc.value + "=null"}, tc.more...)
			if !strings.HasPrefix(tc.value, "crds") {
				args = append(args, "--set", "crds.install=false")
			}
			plain := render(t, today, args...)
			if tc.gone != "" && strings.Contains(plain, tc.gone) {
				t.Errorf("%s is there", tc.gone)
			}
			if !strings.Contains(plain, tc.stands) {
				t.Errorf("there is no %s", tc.stands)
			}
			// Helm keeps the null where an older chart did not have the value, and takes it out with the value where it had.
			olders := map[string]map[string]any{"unknown": without(t, today, tc.value)}
			if !slices.ContainsFunc(laterValues(t), func(later string) bool { return strings.HasPrefix(tc.value+".", later+".") }) {
				olders["known"] = without(t, today, "valuesVersion")
			}
			for name, values := range olders {
				t.Run(name, func(t *testing.T) {
					sameObjects(t, objectsByName(t, render(t, values, args...)), objectsByName(t, plain))
				})
			}
		})
	}
	// A user's own keys, of which this version has no defaults.
	if manifest := render(t, today, "--set", "crds.install=false", "--set", "podLabels.team=null", "--set", "podLabels.tier=one"); strings.Contains(manifest, "team:") || !strings.Contains(manifest, "tier: one") {
		t.Error("a label that is null is not left out")
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

// laterValues are those that came after the first release, as the templates have them.
func laterValues(t *testing.T) []string {
	t.Helper()
	helpers, err := os.ReadFile(filepath.Join(repo, chartOf(all), "templates", "_helpers.tpl"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(helpers), "{{- define \"since\" -}}\n")
	list, _, _ = strings.Cut(list, "{{- end }}")
	values := slices.Sorted(maps.Keys(asValues(t, list)))
	if len(values) == 0 {
		t.Fatal("there is no list of values that came later")
	}
	return values
}

// without are the first release's values in place of today's, as far as one of them goes: it is not there.
func without(t *testing.T, values map[string]any, name string) map[string]any {
	t.Helper()
	less := asValues(t, asYAML(t, values))
	delete(less, "valuesVersion")
	within, path := less, strings.Split(name, ".")
	for _, part := range path[:len(path)-1] {
		within = within[part].(map[string]any)
	}
	delete(within, path[len(path)-1])
	return less
}

// TestThresholdsOfCharts: each alert that waits for a value, or a time, may have another one, and only those.
func TestThresholdsOfCharts(t *testing.T) {
	helm := pinnedHelm(t)
	rules := func(more ...string) map[string]string {
		t.Helper()
		manifest := helm(t, append([]string{"template", "release", filepath.Join(repo, chartOf(all)), "--set", "crds.install=false",
			"--set", "metrics.prometheusRule.enabled=true", "--show-only", "templates/prometheus.yaml"}, more...)...)
		all := map[string]string{}
		for _, object := range objectsByName(t, manifest) {
			var of struct {
				Spec struct {
					Groups []struct {
						Rules []struct {
							Alert, Expr string
							Labels      map[string]string
						}
					}
				}
			}
			if err := yaml.Unmarshal([]byte(asYAML(t, object.Object)), &of); err != nil {
				t.Fatal(err)
			}
			for _, group := range of.Spec.Groups {
				for _, rule := range group.Rules {
					all[rule.Alert+"/"+rule.Labels["severity"]] = rule.Expr
				}
			}
		}
		return all
	}
	schema, err := os.ReadFile(filepath.Join(repo, chartOf(all), "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var root valueSchema
	if err := yaml.Unmarshal(schema, &root); err != nil {
		t.Fatal(err)
	}
	known := root.Properties["metrics"].Properties["prometheusRule"].Properties["thresholds"].Properties
	before := rules()
	var set []string
	for name := range known {
		set = append(set, "--set", "metrics.prometheusRule.thresholds."+name+"=7654321")
	}
	after := rules(set...)
	waits := regexp.MustCompile(`time\(\)|> [1-9]|> 0\.`)
	for name, expr := range before {
		alert, _, _ := strings.Cut(name, "/")
		_, ofAlert := known[alert]
		_, ofRule := known[name]
		// The others have no time to wait for: what they are about is wrong at once.
		wants := waits.MatchString(expr) && alert != "FairleadAtMissed"
		if wants != (ofAlert || ofRule) {
			t.Errorf("a threshold of %s in values.schema.json: %v, want %v", name, ofAlert || ofRule, wants)
			continue
		}
		want := 0
		if wants {
			want++
		}
		if _, isSplit := known[alert+"/critical"]; isSplit && strings.HasSuffix(name, "/warning") {
			want++ // where the critical one begins
		}
		if got := strings.Count(after[name], "7654321"); got != want {
			t.Errorf("%s is %s with another threshold", name, after[name])
		}
	}
}

// TestDocumentationOfCharts: alerts and dashboards lead to where it is kept.
func TestDocumentationOfCharts(t *testing.T) {
	helm := pinnedHelm(t)
	args := append([]string{"template", "release", filepath.Join(repo, chartOf(all)), "--set", "documentation=https://docs.example.org/fairlead/"}, everything...)
	manifest := helm(t, args...)
	if strings.Contains(manifest, "https://fairlead.example.com/docs") || !strings.Contains(manifest, "runbook_url: https://docs.example.org/fairlead/runbooks/FairleadAtLate.md") ||
		!strings.Contains(manifest, `\"https://docs.example.org/fairlead/runbooks\"`) {
		t.Error("the address of the documentation is not that of the values everywhere")
	}
}

// TestPodMonitorsOfCharts: in the namespaces that the operator works for.
func TestPodMonitorsOfCharts(t *testing.T) {
	helm := pinnedHelm(t)
	for namespaces, want := range map[string]string{"null": "namespaceSelector:\n    any: true\n", "{a,b}": "namespaceSelector:\n    matchNames:\n      - a\n      - b\n"} {
		manifest := helm(t, "template", "release", filepath.Join(repo, chartOf(all)), "--set", "metrics.podMonitor.enabled=true", "--set", "metrics.podMonitor.labels.team=one",
			"--set", "watchNamespaces="+namespaces, "--show-only", "templates/prometheus.yaml")
		if strings.Count(manifest, want) != 2 || strings.Count(manifest, "team: one") != 2 {
			t.Errorf("with watchNamespaces=%s:\n%s", namespaces, manifest)
		}
	}
}

// TestValuesAreDocumented: in a chart's README, and in the guide.
func TestValuesAreDocumented(t *testing.T) {
	r, err := open(options{repo: repo, operator: all, version: current, base: base})
	if err != nil {
		t.Fatal(err)
	}
	content, name, err := r.chart(all)
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join(repo, "docs", "install", "helm.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(content[name+"/README.md"].content)
	for _, value := range leaves(chartValues(t, all), "") {
		if value != "valuesVersion" && !strings.Contains(string(guide), "`"+value+"`") {
			t.Errorf("docs/install/helm.md has no value %s", value)
		}
		// Some values are in the row of the map that they are in.
		above := value[:max(strings.LastIndex(value, "."), 0)]
		if !strings.Contains(readme, "| `"+value+"` |") && !strings.Contains(readme, "| `"+above+"` |") {
			t.Errorf("README.md of the chart has no value %s", value)
		}
	}
}

// leaves are the paths of the values, without what is within resources and labels.
func leaves(values map[string]any, under string) []string {
	var all []string
	for name, value := range values {
		if below, is := value.(map[string]any); is && len(below) > 0 && name != "resources" && name != "labels" {
			all = append(all, leaves(below, under+name+".")...)
		} else {
			all = append(all, under+name)
		}
	}
	return all
}
