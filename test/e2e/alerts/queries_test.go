//go:build e2e

package alerts

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/test/e2e"
)

// series is what Prometheus answers: values by the time.
type series struct {
	Metric map[string]string `json:"metric"`
	Values [][2]any          `json:"values"`
}

// hasNumber says whether some value is one: what is divided by nothing is none.
func (s series) hasNumber() bool {
	return slices.ContainsFunc(s.Values, func(v [2]any) bool {
		n, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64)
		return err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
	})
}

// kept is what make pictures draws: the answers by dashboard, panel and query.
type kept struct {
	Start, End time.Time
	Answers    map[string][]series
}

// checkDashboards runs the query of each panel over the time of the test: it has to return series. So do the variables.
// If KEEP_SERIES names a file, the answers are written into it.
func (w *world) checkDashboards(t *testing.T) {
	t.Helper()
	dashboards, err := Dashboards(e2e.Root)
	if err != nil {
		t.Fatal(err)
	}
	keep := kept{w.began, time.Now(), map[string][]series{}}
	queries := 0
	for _, d := range dashboards {
		variables := map[string]string{
			"__rate_interval": "30s", "__interval": "5s", "__range": fmt.Sprintf("%ds", int(keep.End.Sub(keep.Start).Seconds())),
		}
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				variables[v.Name] = w.all(t, d, v, variables, keep)
			}
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				answer := w.query(t, d, p, replace(q.Expr, variables), keep)
				if !slices.ContainsFunc(answer, series.hasNumber) {
					t.Errorf("dashboard %q, panel %q: query %s returns nothing:\n%s", d.Title, p.Title, q.RefID, replace(q.Expr, variables))
				}
				if strings.Contains(q.Expr, `"runbook"`) {
					w.checkRunbooks(t, d, p, q.Expr, answer)
				}
				keep.Answers[fmt.Sprintf("%s/%d/%s", d.UID, p.ID, q.RefID)] = answer
				queries++
			}
		}
	}
	t.Logf("ran %d queries of %d dashboards", queries, len(dashboards))
	if file := os.Getenv("KEEP_SERIES"); file != "" {
		text, err := json.Marshal(keep)
		if err == nil {
			err = os.WriteFile(file, text, 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

var variable = regexp.MustCompile(`\$(\w+)`)

func replace(text string, variables map[string]string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		if value, known := variables[name[1:]]; known {
			return value
		}
		return name
	})
}

// all is what Grafana makes of a variable that is set to All.
func (w *world) all(t *testing.T, d Dashboard, v Variable, variables map[string]string, when kept) string {
	t.Helper()
	match := regexp.MustCompile(`^label_values\((.+),\s*(\w+)\)$`).FindStringSubmatch(replace(v.Query, variables))
	if match == nil {
		t.Fatalf("dashboard %q, variable %s: %s", d.Title, v.Name, v.Query)
	}
	var values struct{ Data []string }
	if err := w.ask(t, "/api/v1/label/"+match[2]+"/values?"+url.Values{"match[]": {match[1]}, "start": {unix(when.Start)}, "end": {unix(when.End)}}.Encode(), &values); err != nil {
		t.Errorf("dashboard %q, variable %s: %v", d.Title, v.Name, err)
	}
	if len(values.Data) == 0 {
		t.Errorf("dashboard %q, variable %s has no values: %s", d.Title, v.Name, v.Query)
	}
	if v.AllValue != "" {
		return v.AllValue
	}
	return strings.Join(values.Data, "|")
}

func unix(at time.Time) string { return fmt.Sprint(at.Unix()) }

func (w *world) query(t *testing.T, d Dashboard, p Panel, expr string, when kept) []series {
	t.Helper()
	var answer struct{ Data struct{ Result []series } }
	if err := w.ask(t, "/api/v1/query_range?"+url.Values{"query": {expr}, "start": {unix(when.Start)}, "end": {unix(when.End)}, "step": {"1s"}}.Encode(), &answer); err != nil {
		t.Errorf("dashboard %q, panel %q: %v\n%s", d.Title, p.Title, err, expr)
	}
	return answer.Data.Result
}

// checkRunbooks holds a table of objects against the alerts that have fired: where an alert is about an object for which
// the table knows runbooks, the table had the runbook of that alert.
func (w *world) checkRunbooks(t *testing.T, d Dashboard, p Panel, expr string, answer []series) {
	t.Helper()
	found := 0
	firing, resolved := w.heard(nil)
	for _, n := range append(firing, resolved...) {
		alert := n.Labels["alertname"]
		if n.Labels["name"] == "" || !strings.Contains(expr, strconv.Quote(alert)) {
			continue
		}
		if !slices.ContainsFunc(answer, func(s series) bool {
			return s.Metric["namespace"] == n.Labels["namespace"] && s.Metric["name"] == n.Labels["name"] && s.Metric["runbook"] == alert
		}) {
			t.Errorf("dashboard %q, panel %q: no line for %v, which was an alert", d.Title, p.Title, maps.Clone(n.Labels))
			continue
		}
		found++
	}
	if found == 0 {
		t.Errorf("dashboard %q, panel %q: none of the alerts was about an object in it", d.Title, p.Title)
	}
}
