package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// runbook is the page about objects with some problem: that of the alert that they cause, or will if they go on.
type runbook struct {
	alert string
	// problem selects the series of fairlead_object_problem.
	problem string
}

var (
	ofProblem = regexp.MustCompile(`fairlead_object_problem\{([^}]*)\}`)
	space     = regexp.MustCompile(`\s+`)
)

// runbooksOf are those of an operator, from its alert rules, so that a dashboard leads to the page to which an alert
// leads. The first one of which the selector fits is the one of an object.
func runbooksOf(operator string) ([]runbook, error) {
	file := filepath.Join("operators", operator, "config", "prometheus", "rules.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var all []runbook
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if match := ofProblem.FindStringSubmatch(rule.Expr); match != nil {
				all = append(all, runbook{rule.Alert, space.ReplaceAllString(match[1], "")})
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no alert is about objects", file)
	}
	return all, nil
}

// problems is a query for how long objects have not been Ready: those that a selector fits, with the labels runbook
// and operator, which names the dashboard.
func problems(runbooks []runbook, selector string) string {
	one := func(alert, selector string) string {
		series := "max by (group, kind, namespace, name, reason, available) (fairlead_object_problem{" + selector + "})"
		if alert == "" {
			return series
		}
		return fmt.Sprintf(`label_replace(%s, "runbook", %q, "", "")`, series, alert)
	}
	var each []string
	for _, r := range runbooks {
		each = append(each, one(r.alert, r.problem+","+selector))
	}
	// The last are those that no alert is about.
	query := strings.Join(append(each, one("", selector)), "\nor ignoring (runbook) ")
	for _, operator := range operators {
		query = fmt.Sprintf("label_replace(%s, \"operator\", %q, \"kind\", %q)", query, operator.name, operator.kinds)
	}
	return "time() - " + query
}
