package alerts

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestScaleExpr(t *testing.T) {
	for expr, want := range map[string]string{
		`time() - max(x) > 300`:                     `time() - max(x) > 5`,
		`time() - min(x) > 26 * 3600`:               `time() - min(x) > 26 * 1`,
		`x - time() < 14 * 86400 >= 3 * 86400`:      `x - time() < 14 * 24 >= 3 * 24`,
		`sum(increase(x{a!~"B|C"}[15m])) > 10`:      `sum(increase(x{a!~"B|C"}[15s])) > 10`,
		`max(x) > 0.8`:                              `max(x) > 0.8`,
		`max by (name) (x{name=~"at-leader"}) == 0`: `max by (name) (x{name=~"at-leader"}) == 0`,
	} {
		if got := scaleExpr(expr); got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

// TestScaleLeavesNoTime: in the rules that users load, no time is left that a test would have to wait for.
func TestScaleLeavesNoTime(t *testing.T) {
	files, err := filepath.Glob("../../../operators/*/config/prometheus/rules.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	text, number := regexp.MustCompile(`"[^"]*"`), regexp.MustCompile(`\d+(\.\d+)?[smhdwy]?`)
	for _, file := range files {
		rules, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scaled, err := Scale(rules)
		if err != nil {
			t.Fatal(err)
		}
		var parsed struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr, For string
					KeepFiringFor    string `json:"keep_firing_for"`
				}
			}
		}
		if err := yaml.Unmarshal(scaled, &parsed); err != nil || len(parsed.Groups) == 0 {
			t.Fatalf("%s: %v\n%s", file, err, scaled)
		}
		for _, group := range parsed.Groups {
			for _, rule := range group.Rules {
				for _, n := range number.FindAllString(rule.For+" "+rule.KeepFiringFor+" "+text.ReplaceAllString(rule.Expr, ""), -1) {
					value, err := strconv.ParseFloat(regexp.MustCompile(`s$`).ReplaceAllString(n, ""), 64)
					if err != nil || value >= 60 {
						t.Errorf("%s: %s has %s left: for %q, %s", file, rule.Alert, n, rule.For, rule.Expr)
					}
				}
			}
		}
	}
}
