package alerts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Dashboard is what the tests know of one for Grafana.
type Dashboard struct {
	UID, Title string
	Panels     []Panel
	Templating struct{ List []Variable }
}

// Panel is one of a dashboard, or the heading of a row.
type Panel struct {
	ID                       int
	Type, Title, Description string
	Targets                  []struct {
		RefID      string
		Expr       string
		Datasource struct{ UID string }
	}
	FieldConfig struct{ Defaults struct{ Unit string } }
}

// Variable is one that the reader of a dashboard sets.
type Variable struct {
	Type, Name, Query, AllValue string
}

// Dashboards are those that are checked in, below the root of the repository.
func Dashboards(root string) ([]Dashboard, error) {
	var all []Dashboard
	for _, folder := range []string{"operators/*/config/grafana", "operators/config/grafana/common"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.json"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no dashboards in %s (%w)", folder, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			var d Dashboard
			if err := json.Unmarshal(text, &d); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, d)
		}
	}
	return all, nil
}
