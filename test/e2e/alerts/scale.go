// Package alerts is the end-to-end test of the alerts: each is caused on the local cluster, and fires in a Prometheus and an
// Alertmanager that run beside it. The commands of its runbook are run as they stand in the page, the cause is mended,
// and the alert ends.
//
// The rules are those that users load, with their times made short: see [Scale]. The operators' own times, such as
// how soon they try again, are as they are.
package alerts

import (
	"fmt"
	"regexp"
	"strconv"

	"sigs.k8s.io/yaml"
)

// A rule has times in three forms: as durations (`for: 5m`, `[15m]`), as numbers of seconds, and as hours or days
// times 3600 or 86400. A number of 60 or more is one of seconds: no rule counts so many of anything else.
var (
	duration = regexp.MustCompile(`\b(\d+)m\b`)
	hours    = regexp.MustCompile(`\* 3600\b`)
	days     = regexp.MustCompile(`\* 86400\b`)
	seconds  = regexp.MustCompile(`([<>]=? )(\d+)\b`)
)

// Scale makes the times of a rule file short: minutes become seconds, and so do hours; days become 24 seconds.
func Scale(rules []byte) ([]byte, error) {
	var file map[string]any
	if err := yaml.Unmarshal(rules, &file); err != nil {
		return nil, err
	}
	groups, _ := file["groups"].([]any)
	for _, group := range groups {
		rules, _ := group.(map[string]any)["rules"].([]any)
		for _, rule := range rules {
			rule := rule.(map[string]any)
			rule["expr"] = scaleExpr(fmt.Sprint(rule["expr"]))
			for _, field := range []string{"for", "keep_firing_for"} {
				if text, ok := rule[field].(string); ok {
					rule[field] = duration.ReplaceAllString(text, "${1}s")
				}
			}
		}
	}
	return yaml.Marshal(file)
}

func scaleExpr(expr string) string {
	expr = duration.ReplaceAllString(expr, "${1}s")
	expr = days.ReplaceAllString(expr, "* 24")
	expr = hours.ReplaceAllString(expr, "* 1")
	return seconds.ReplaceAllStringFunc(expr, func(text string) string {
		parts := seconds.FindStringSubmatch(text)
		n, err := strconv.Atoi(parts[2])
		if err != nil || n < 60 {
			return text
		}
		return parts[1] + strconv.Itoa(n/60)
	})
}
