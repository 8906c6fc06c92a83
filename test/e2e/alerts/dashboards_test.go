package alerts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/fairlead/internal/kit/metrics"
	_ "example.com/fairlead/operators/at"
	_ "example.com/fairlead/operators/etcd"
	_ "example.com/fairlead/operators/memcached"
	_ "example.com/fairlead/operators/webserver"
)

const root = "../../.."

// TestDashboardsShowAllMetrics: what the operators say is to be seen somewhere.
func TestDashboardsShowAllMetrics(t *testing.T) {
	dashboards, err := Dashboards(root)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	name, part := regexp.MustCompile(`fairlead_\w+`), regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, d := range dashboards {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				for _, metric := range name.FindAllString(q.Expr, -1) {
					shown[part.ReplaceAllString(metric, "")] = true
				}
			}
		}
	}
	families := metrics.Families()
	if len(families) == 0 {
		t.Fatal("there are no metrics")
	}
	for _, f := range families {
		if !shown[f.Name] {
			t.Errorf("no dashboard shows %s", f.Name)
		}
	}
}

// TestDashboardsAreExplained: each panel says what it shows and in which unit, of the data source that the reader
// selects, and the runbooks that it leads to exist.
func TestDashboardsAreExplained(t *testing.T) {
	dashboards, err := Dashboards(root)
	if err != nil {
		t.Fatal(err)
	}
	runbook := regexp.MustCompile(`"runbook", "(\w+)"`)
	leads := 0
	for _, d := range dashboards {
		titles := map[string]bool{}
		row := ""
		for _, p := range d.Panels {
			if p.Type == "row" {
				row = p.Title
				continue
			}
			if title := row + "/" + p.Title; p.Title == "" || titles[title] {
				t.Errorf("%s: a second panel is called %q", d.Title, title)
			} else {
				titles[title] = true
			}
			if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %q has description %q, unit %q and %d queries", d.Title, p.Title, p.Description, p.FieldConfig.Defaults.Unit, len(p.Targets))
			}
			for _, q := range p.Targets {
				if q.Datasource.UID != "${datasource}" {
					t.Errorf("%s: panel %q asks %q", d.Title, p.Title, q.Datasource.UID)
				}
				for _, match := range runbook.FindAllStringSubmatch(q.Expr, -1) {
					leads++
					if _, err := os.Stat(filepath.Join(root, "docs", "runbooks", match[1]+".md")); err != nil {
						t.Errorf("%s: panel %q: %v", d.Title, p.Title, err)
					}
				}
			}
		}
		if !strings.HasPrefix(d.UID, "fairlead-") {
			t.Errorf("%s: the uid is %q", d.Title, d.UID)
		}
	}
	if leads == 0 {
		t.Error("no dashboard leads to a runbook")
	}
}
