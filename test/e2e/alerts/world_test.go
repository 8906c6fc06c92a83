//go:build e2e

package alerts

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

var operators = []string{"at", "etcd", "memcached", "webserver"}

// world is a Prometheus that scrapes the deployed operators, with the rules that users load, an Alertmanager, and
// who gets its alerts.
type world struct {
	prometheus string
	began      time.Time

	mu sync.Mutex
	// got has what was heard last of each alert, by its labels.
	got map[string]notice
}

// notice is an alert as a webhook gets it.
type notice struct {
	Status              string
	Labels, Annotations map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{got: map[string]notice{}, began: time.Now()}
	receiver := httptest.NewServer(w)
	t.Cleanup(receiver.Close)
	folder := t.TempDir()
	etcd, memcached := workloads(t, "etcd"), workloads(t, "memcached")
	alertmanager, prometheus := free(t), free(t)
	e2e.Serve(t, alertmanager, program(t, "alertmanager"), "--web.listen-address="+alertmanager, "--cluster.listen-address=",
		"--storage.path="+filepath.Join(folder, "alertmanager"), "--log.level=warn",
		"--config.file="+write(t, folder, "alertmanager.yaml", map[string]any{
			// Each alert is told by itself, at once.
			"route":     map[string]any{"receiver": "test", "group_by": []string{"..."}, "group_wait": "0s", "group_interval": "1s", "repeat_interval": "1h"},
			"receivers": []any{map[string]any{"name": "test", "webhook_configs": []any{map[string]any{"url": receiver.URL, "send_resolved": true}}}},
		}))
	e2e.Serve(t, prometheus, program(t, "prometheus"), "--web.listen-address="+prometheus, "--storage.tsdb.path="+filepath.Join(folder, "prometheus"),
		"--rules.alert.resend-delay=2s", "--log.level=warn", "--config.file="+write(t, folder, "prometheus.yaml", map[string]any{
			"global":         map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
			"rule_files":     ruleFiles(t, folder),
			"scrape_configs": append(scrapeConfigs(t, folder), etcd, memcached),
			"alerting":       map[string]any{"alertmanagers": []any{map[string]any{"static_configs": []any{map[string]any{"targets": []string{alertmanager}}}}}},
		}))
	w.prometheus = "http://" + prometheus
	pace.Eventually(t, time.Minute, func() error { return w.scrapes(t) })
	return w
}

func free(t *testing.T) string { return net.JoinHostPort("127.0.0.1", e2e.FreePort(t, "127.0.0.1")) }

func program(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(e2e.Root, "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func write(t *testing.T, folder, name string, content any) string {
	t.Helper()
	data, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// ruleFiles are the operators' own, with their times made short.
func ruleFiles(t *testing.T, folder string) []string {
	t.Helper()
	var files []string
	for _, operator := range operators {
		rules, err := os.ReadFile(filepath.Join(e2e.Root, "operators", operator, "config", "prometheus", "rules.yaml"))
		if err == nil {
			rules, err = Scale(rules)
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(folder, operator+".yaml"))
		if err := os.WriteFile(files[len(files)-1], rules, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// scrapeConfigs is what docs/alerts.md has, for a Prometheus outside of the cluster: it does not find pods, and is told
// where they are, with the labels that they would be found with.
func scrapeConfigs(t *testing.T, folder string) []any {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(e2e.Root, "docs", "alerts.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "```yaml\nscrape_configs:")
	text, _, _ := strings.Cut(after, "```")
	const token, discovery = "/var/run/secrets/kubernetes.io/serviceaccount/token", "kubernetes_sd_configs: [{role: endpoints, namespaces: {names: [fairlead-system]}}]"
	if !found || !strings.Contains(text, token) || !strings.Contains(text, discovery) {
		t.Fatal("docs/alerts.md does not say how to scrape")
	}
	var targets []string
	for _, operator := range operators {
		targets = append(targets, fmt.Sprintf("{targets: [%q], labels: {__meta_kubernetes_endpoint_port_name: https, __meta_kubernetes_namespace: %s-operator-system}}", exposed(t, operator), operator))
	}
	text = strings.NewReplacer(token, reader(t, folder), discovery, "static_configs: ["+strings.Join(targets, ", ")+"]").Replace(text)
	var configs []any
	if err := yaml.Unmarshal([]byte(text), &configs); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return configs
}

// exposed is a port of the node that leads to the metrics of an operator, whether or not it is ready.
func exposed(t *testing.T, operator string) string {
	t.Helper()
	return onNode(t, operator+"-operator-system", "control-plane: controller-manager", 8443)
}

// onNode is a port of the node that leads to pods, whether or not they are ready.
func onNode(t *testing.T, namespace, labels string, port int) string {
	t.Helper()
	const name = "of-the-tests"
	e2e.Apply(t, namespace, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %s}
spec: {type: NodePort, publishNotReadyAddresses: true, selector: {%s}, ports: [{port: %d}]}
`, name, labels, port))
	t.Cleanup(func() { _, _ = e2e.TryKubectl("", "delete", "service", name, "-n", namespace, "--ignore-not-found") })
	return net.JoinHostPort(e2e.Kubectl(t, "get", "nodes", "-o", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`),
		e2e.Kubectl(t, "get", "service", name, "-n", namespace, "-o", "jsonpath={.spec.ports[0].nodePort}"))
}

// reader is the file with the token of an account that may read the metrics.
func reader(t *testing.T, folder string) string {
	t.Helper()
	namespace := e2e.NewNamespace(t)
	e2e.Kubectl(t, "create", "serviceaccount", "prometheus", "-n", namespace)
	for _, operator := range operators {
		binding := namespace + "-" + operator
		e2e.Kubectl(t, "create", "clusterrolebinding", binding, "--clusterrole="+operator+"-operator-metrics-reader", "--serviceaccount="+namespace+":prometheus")
		t.Cleanup(func() { _, _ = e2e.TryKubectl("", "delete", "clusterrolebinding", binding) })
	}
	file := filepath.Join(folder, "token")
	if err := os.WriteFile(file, []byte(e2e.Kubectl(t, "create", "token", "prometheus", "-n", namespace, "--duration=2h")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// ask reads from Prometheus' API.
func (w *world) ask(t *testing.T, path string, answer any) error {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.prometheus+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

// scrapes says why not every operator is scraped.
func (w *world) scrapes(t *testing.T) error {
	var targets struct {
		Data struct {
			ActiveTargets []struct{ Health, LastError, ScrapeURL, ScrapePool string }
		}
	}
	if err := w.ask(t, "/api/v1/targets?state=active", &targets); err != nil {
		return err
	}
	up := 0
	for _, target := range targets.Data.ActiveTargets {
		if target.ScrapePool == "fairlead" && target.Health == "up" {
			up++
		}
	}
	if up < len(operators) {
		return fmt.Errorf("%d of %d operators are scraped: %+v", up, len(operators), targets.Data)
	}
	return nil
}

// checkRules fails for a rule that Prometheus could not evaluate.
func (w *world) checkRules(t *testing.T) {
	t.Helper()
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := w.ask(t, "/api/v1/rules", &rules); err != nil {
		t.Error(err)
	}
	for _, group := range rules.Data.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "ok" {
				t.Errorf("rule %s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
	}
}

// ServeHTTP is the webhook that Alertmanager calls.
func (w *world) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var message struct{ Alerts []notice }
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range message.Alerts {
		w.got[fmt.Sprint(n.Labels)] = n // maps are printed in order
	}
}

// heard are the alerts with these labels, as they are now.
func (w *world) heard(want map[string]string) (firing, resolved []notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(w.got)) {
		n := w.got[key]
		has := true
		for label, value := range want {
			has = has && n.Labels[label] == value
		}
		switch {
		case has && n.Status == "firing":
			firing = append(firing, n)
		case has:
			resolved = append(resolved, n)
		}
	}
	return firing, resolved
}

// fires waits for an alert with these labels.
func (w *world) fires(t *testing.T, want map[string]string) notice {
	t.Helper()
	var n notice
	pace.Eventually(t, patience, func() error {
		firing, _ := w.heard(want)
		if len(firing) == 0 {
			return fmt.Errorf("no alert %v; of the others there are %s", want, w.names())
		}
		n = firing[0]
		return nil
	})
	return n
}

// ends waits until no alert with these labels is left.
func (w *world) ends(t *testing.T, want map[string]string) {
	t.Helper()
	pace.Eventually(t, patience, func() error {
		if firing, resolved := w.heard(want); len(firing) > 0 || len(resolved) == 0 {
			return fmt.Errorf("the alert has not ended: %v", firing)
		}
		return nil
	})
}

func (w *world) names() string {
	firing, _ := w.heard(nil)
	var all []string
	for _, n := range firing {
		all = append(all, strings.TrimSpace(n.Labels["alertname"]+" "+n.Labels["name"]+" "+n.Labels["reason"]))
	}
	return strings.Join(all, ", ")
}
