//go:build e2e

package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Scrape reads the metrics of a deployed operator as Prometheus does: with the token of a service
// account that may. With an empty account it has none. It returns the status of the answer.
func Scrape(t testing.TB, operator, account string) (int, map[string]*dto.MetricFamily, error) {
	t.Helper()
	namespace, name := operator+"-operator-system", operator+"-operator-controller-manager"
	forward := exec.CommandContext(t.Context(), "kubectl", "port-forward", "-n", namespace, "deployment/"+name, ":8443")
	out, err := forward.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := forward.Start(); err != nil {
		return 0, nil, err
	}
	defer func() { _ = forward.Process.Kill(); _ = forward.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n') // Forwarding from 127.0.0.1:40001 -> 8443
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
	if err != nil || address == "" {
		return 0, nil, fmt.Errorf("kubectl port-forward says %q, %w", line, err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return 0, nil, err
	}
	if account != "" {
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(Kubectl(t, "create", "token", "-n", namespace, account)))
	}
	insecure := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // the manager's certificate is its own
	resp, err := insecure.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil, nil
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	return resp.StatusCode, families, err
}

// CheckMetrics compares what a deployed operator serves with docs/metrics.md: all its metrics are there, with their type, labels
// and text, and all that is there for it, its title being the section, is served. Only metrics about single objects, and
// those named in absent, may have no series now.
func CheckMetrics(t testing.TB, operator, section string, absent ...string) {
	t.Helper()
	namespace := operator + "-operator-system"
	Kubectl(t, "create", "serviceaccount", "scraper", "-n", namespace)
	t.Cleanup(func() { _, _ = TryKubectl("", "delete", "serviceaccount", "scraper", "-n", namespace) })
	binding := operator + "-scraper"
	Kubectl(t, "create", "clusterrolebinding", binding, "--clusterrole="+operator+"-operator-metrics-reader", "--serviceaccount="+namespace+":scraper")
	t.Cleanup(func() { _, _ = TryKubectl("", "delete", "clusterrolebinding", binding) })
	code, families, err := Scrape(t, operator, "scraper")
	if err != nil || code != http.StatusOK {
		t.Fatalf("a scrape of %s: %d, %v", operator, code, err)
	}
	page := documented(t)
	served := map[string]bool{}
	for name, family := range families {
		if !strings.HasPrefix(name, "fairlead_") {
			continue
		}
		served[name] = true
		want, ok := page[name]
		got := row{section: want.section, kind: strings.ToLower(family.GetType().String()), labels: labelsOf(family), help: family.GetHelp()}
		switch {
		case !ok:
			t.Errorf("%s is served, and not in docs/metrics.md", name)
		case want != got:
			t.Errorf("%s is served as %+v, and docs/metrics.md has %+v", name, got, want)
		}
	}
	for name, row := range page {
		single := strings.Contains(row.labels, "name")
		if (row.section == section || row.section == "All kinds") && !served[name] && !single && !slices.Contains(absent, name) {
			t.Errorf("%s is in docs/metrics.md, and not served", name)
		}
	}
}

// row is what docs/metrics.md says of a metric.
type row struct{ section, kind, labels, help string }

func documented(t testing.TB) map[string]row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, section := map[string]row{}, ""
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		if cells := strings.SplitN(strings.Trim(line, "|\n "), " | ", 4); len(cells) == 4 && strings.HasPrefix(cells[0], "`fairlead_") {
			rows[strings.Trim(cells[0], "`")] = row{section: section, kind: cells[1], labels: sorted(strings.Split(cells[2], ", ")), help: cells[3]}
		}
	}
	return rows
}

func labelsOf(family *dto.MetricFamily) string {
	all := map[string]bool{}
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			all[l.GetName()] = true
		}
	}
	return sorted(slices.Collect(maps.Keys(all)))
}

func sorted(labels []string) string {
	slices.Sort(labels)
	return strings.Join(labels, ", ")
}
