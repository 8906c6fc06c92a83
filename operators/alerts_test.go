package operators

import (
	"cmp"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// alert is a rule in a file that Prometheus loads.
type alert struct {
	Alert, Expr   string
	For           string
	KeepFiringFor string `json:"keep_firing_for"`
	Labels        map[string]string
	Annotations   map[string]string
}

// alerts are those of all operators, by file.
func alerts(t *testing.T) map[string][]alert {
	t.Helper()
	files, err := filepath.Glob("*/config/prometheus/rules.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	all := map[string][]alert{}
	for _, file := range files {
		var rules struct{ Groups []struct{ Rules []alert } }
		if err := yaml.Unmarshal([]byte(readFile(t, file)), &rules); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, group := range rules.Groups {
			all[file] = append(all[file], group.Rules...)
		}
	}
	return all
}

// TestAlertsHaveRunbooks: each alert says what whoever gets it needs, and leads to a page about it. Each page is of
// an alert, and in the list.
func TestAlertsHaveRunbooks(t *testing.T) {
	const at = "https://fairlead.example.com/docs/runbooks/"
	list := readFile(t, "../docs/alerts.md")
	pages := map[string]bool{}
	files, err := filepath.Glob("../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		pages[strings.TrimSuffix(filepath.Base(file), ".md")] = false
	}
	for file, rules := range alerts(t) {
		tests := readFile(t, filepath.Join(filepath.Dir(file), "rules_test.yaml"))
		for _, a := range rules {
			if _, there := pages[a.Alert]; !there {
				t.Errorf("%s: %s has no page in docs/runbooks", file, a.Alert)
				continue
			}
			pages[a.Alert] = true
			if got, want := a.Annotations["runbook_url"], at+a.Alert+".md"; got != want {
				t.Errorf("%s: runbook_url of %s is %q, want %q", file, a.Alert, got, want)
			}
			if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
				t.Errorf("%s: %s lacks a severity, a summary or a description", file, a.Alert)
			}
			if !strings.Contains(tests, "runbook_url: "+at+a.Alert+".md") {
				t.Errorf("%s: no test lets %s fire", file, a.Alert)
			}
			if !strings.Contains(list, "[`"+a.Alert+"`](runbooks/"+a.Alert+".md)") {
				t.Errorf("docs/alerts.md lacks %s", a.Alert)
			}
		}
	}
	for name, used := range pages {
		if !used {
			t.Errorf("docs/runbooks/%s.md is of no alert", name)
		}
		if !strings.HasPrefix(readFile(t, "../docs/runbooks/"+name+".md"), "# "+name+"\n") {
			t.Errorf("docs/runbooks/%s.md has another title", name)
		}
	}
}

// TestAlertsAreCaused: the end-to-end tests of the alerts have a cause for each.
func TestAlertsAreCaused(t *testing.T) {
	files, err := filepath.Glob("../test/e2e/alerts/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	causes := ""
	for _, file := range files {
		causes += readFile(t, file)
	}
	for file, rules := range alerts(t) {
		for _, a := range rules {
			if !regexp.MustCompile(`alerts: .*"` + a.Alert + `["/]`).MatchString(causes) {
				t.Errorf("%s: nothing in test/e2e/alerts causes %s", file, a.Alert)
			}
		}
	}
}

// TestAlertsKnowReasons: a reason that an alert looks for is one that guides have, and so one that objects have.
func TestAlertsKnowReasons(t *testing.T) {
	matcher, word := regexp.MustCompile(`reason[!=]~?"([^"]*)"`), regexp.MustCompile(`^\w+$`)
	guides := ""
	for _, name := range []string{"at", "memcached", "webserver", "etcd", "etcd-backup", "troubleshooting"} {
		guides += readFile(t, "../docs/"+name+".md")
	}
	for file, rules := range alerts(t) {
		for _, a := range rules {
			for _, match := range matcher.FindAllStringSubmatch(a.Expr, -1) {
				for reason := range strings.SplitSeq(match[1], "|") {
					if word.MatchString(reason) && !strings.Contains(guides, "`"+reason+"`") {
						t.Errorf("%s: %s looks for the reason %s, which is in no guide", file, a.Alert, reason)
					}
				}
			}
		}
	}
}

// TestAlertsOutliveALeader: what only the leader exposes is gone for a moment when another one takes over. What every
// replica exposes needs no patience.
func TestAlertsOutliveALeader(t *testing.T) {
	ofLeader, everyReplicas := regexp.MustCompile(`fairlead_\w+`), []string{"fairlead_rights_missing", "fairlead_writes_total"}
	for file, rules := range alerts(t) {
		for _, a := range rules {
			want := ""
			if name := ofLeader.FindString(a.Expr); name != "" && !slices.Contains(everyReplicas, name) {
				want = "5m"
			}
			if a.KeepFiringFor != want {
				t.Errorf("%s: keep_firing_for of %s is %q, want %q", file, a.Alert, a.KeepFiringFor, want)
			}
		}
	}
}

// leftAlone are reasons that no alert is about: what a user has chosen, and what has times of its own, in
// FairleadEtcdBackupTooOld and spec.backupPolicy.timeoutInSecond, or an alert of another kind.
var leftAlone = map[string][]string{
	"EtcdCluster": {"Paused", "RestoreFailed"}, // FairleadEtcdRestoreFailed
	"EtcdBackup":  {"Paused", "Waiting", "Saving", "Proving", "Pruning"},
}

// TestNoReasonIsLeftOut: a reason that one alert about a kind leaves out is one that another looks for, so that an object
// that is stuck has an alert whatever it is stuck in.
func TestNoReasonIsLeftOut(t *testing.T) {
	selector := regexp.MustCompile(`fairlead_object_problem\{([^}]*)\}`)
	kind, out, in := regexp.MustCompile(`kind="(\w+)"`), regexp.MustCompile(`reason![=~]"([^"]*)"`), regexp.MustCompile(`reason=~?"([^"]*)"`)
	for file, rules := range alerts(t) {
		covered := map[string][]string{}
		for k, reasons := range leftAlone {
			covered[k] = slices.Clone(reasons)
		}
		of := func(a alert, matcher *regexp.Regexp, do func(kind, reason string)) {
			for _, s := range selector.FindAllStringSubmatch(a.Expr, -1) {
				for _, match := range matcher.FindAllStringSubmatch(s[1], -1) {
					for reason := range strings.SplitSeq(match[1], "|") {
						do(kind.FindStringSubmatch(s[1])[1], reason)
					}
				}
			}
		}
		for _, a := range rules {
			of(a, in, func(kind, reason string) { covered[kind] = append(covered[kind], reason) })
		}
		for _, a := range rules {
			of(a, out, func(kind, reason string) {
				if !slices.Contains(covered[kind], reason) {
					t.Errorf("%s: %s leaves out the reason %s of %s, and no other alert looks for it", file, a.Alert, reason, kind)
				}
			})
		}
	}
}

var (
	// threshold is a time in an expression: seconds, or hours and days in seconds.
	threshold = regexp.MustCompile(`[<>]=? (\d+)(?: \* (3600|86400))?`)
	window    = regexp.MustCompile(`\[(\w+)\]`)
	before    = regexp.MustCompile(`offset (\w+)`)
	lasting   = regexp.MustCompile(`\b(\d+|an?) (minute|hour|day)s?\b`)
)

// times are those of an alert: after which it fires, and those within which it counts.
func (a alert) times(t *testing.T) (fires, counts []time.Duration) {
	t.Helper()
	parse := func(text string) time.Duration {
		d, err := time.ParseDuration(cmp.Or(text, "0s"))
		if err != nil {
			t.Fatalf("%s: %v", a.Alert, err)
		}
		return d
	}
	pending := parse(a.For)
	if strings.Contains(a.Expr, "time()") {
		for _, match := range threshold.FindAllStringSubmatch(a.Expr, -1) {
			n, _ := strconv.Atoi(match[1])
			unit, _ := strconv.Atoi(cmp.Or(match[2], "1"))
			fires = append(fires, time.Duration(n*unit)*time.Second+pending)
		}
	}
	for _, match := range before.FindAllStringSubmatch(a.Expr, -1) { // it was so then, already
		fires = append(fires, parse(match[1])+pending)
	}
	if len(fires) == 0 && pending > 0 {
		fires = append(fires, pending)
	}
	for _, match := range window.FindAllStringSubmatch(a.Expr, -1) {
		counts = append(counts, parse(match[1]))
	}
	return fires, counts
}

// timesIn are those that a text names.
func timesIn(text string) []time.Duration {
	var all []time.Duration
	for _, match := range lasting.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			n = 1
		}
		all = append(all, time.Duration(n)*map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}[match[2]])
	}
	return all
}

// TestTimesOfAlerts: the list of alerts, the first sentence of a page, and an alert's own text name the times of its rules:
// how long it takes from the problem to the alert, which is what the expression waits for and then what the rule does.
func TestTimesOfAlerts(t *testing.T) {
	list := readFile(t, "../docs/alerts.md")
	fires, all := map[string][]time.Duration{}, map[string][]time.Duration{}
	for file, rules := range alerts(t) {
		for _, a := range rules {
			after, counts := a.times(t)
			fires[a.Alert] = append(fires[a.Alert], after...)
			all[a.Alert] = append(all[a.Alert], append(counts, after...)...)
			for _, d := range timesIn(a.Annotations["description"]) {
				if !slices.Contains(all[a.Alert], d) {
					t.Errorf("%s: the description of %s names %s, its rule has %s", file, a.Alert, d, all[a.Alert])
				}
			}
		}
	}
	for name, rule := range all {
		_, row, _ := strings.Cut(list, "\n| [`"+name+"`]")
		row, _, _ = strings.Cut(row, "\n")
		page := strings.ReplaceAll(readFile(t, "../docs/runbooks/"+name+".md"), "\n", " ")
		_, sentence, _ := strings.Cut(page, "Severity: ")
		_, sentence, _ = strings.Cut(sentence, ". ")
		sentence, _, _ = strings.Cut(sentence, ". ")
		for where, text := range map[string]string{"docs/alerts.md": row, "the first sentence of docs/runbooks/" + name + ".md": sentence} {
			named := timesIn(text)
			for _, d := range named {
				if !slices.Contains(rule, d) {
					t.Errorf("%s: %s names %s, the rule has %s", name, where, d, rule)
				}
			}
			for _, d := range fires[name] {
				if !slices.Contains(named, d) {
					t.Errorf("%s: %s does not name %s, after which it fires", name, where, d)
				}
			}
		}
	}
}

// TestGuidesLeaveThresholdsToAlerts: what a metric may be before somebody has to know is in the rules, and not
// otherwise in a guide.
func TestGuidesLeaveThresholdsToAlerts(t *testing.T) {
	metric, compared := regexp.MustCompile(`fairlead_\w+`), regexp.MustCompile("`[^`]*fairlead_[^`]* [<>]=? [^`]*`")
	inRules := map[string]bool{}
	for _, rules := range alerts(t) {
		for _, a := range rules {
			for _, name := range metric.FindAllString(a.Expr, -1) {
				inRules[name] = true
			}
		}
	}
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, expr := range compared.FindAllString(readFile(t, file), -1) {
			if name := metric.FindString(expr); inRules[name] {
				t.Errorf("%s: %s: there is an alert about %s, whose rule has the threshold", file, expr, name)
			}
		}
	}
}

// TestRunbooksBeginWithThePlugin: which says in one command what is wrong, of the object if the alert is about one.
func TestRunbooksBeginWithThePlugin(t *testing.T) {
	first := regexp.MustCompile("(?s)\n## How to find out\n.*?```\\w*\n(.*?)\n```\n")
	ofObject := regexp.MustCompile(`^kubectl fairlead status (at|memcached|webserver|etcd|etcdbackup|etcdrestore)/\$NAME -n \$NAMESPACE$`)
	for _, rules := range alerts(t) {
		for _, a := range rules {
			match := first.FindStringSubmatch(readFile(t, "../docs/runbooks/"+a.Alert+".md"))
			switch isOfObject := strings.Contains(a.Expr, "namespace, name"); {
			case match == nil:
				t.Errorf("docs/runbooks/%s.md does not begin with a command", a.Alert)
			case isOfObject && !ofObject.MatchString(match[1]), !isOfObject && match[1] != "kubectl fairlead status -A":
				t.Errorf("docs/runbooks/%s.md begins with %q", a.Alert, match[1])
			}
		}
	}
}

// TestMetricsKeepTheirNamespace: also where Prometheus takes the target's, and renames that of the object.
func TestMetricsKeepTheirNamespace(t *testing.T) {
	files, err := filepath.Glob("*/config/prometheus/servicemonitor.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no ServiceMonitors: %v", err)
	}
	type relabeling struct {
		SourceLabels               []string
		Regex, TargetLabel, Action string
	}
	want := []relabeling{
		{SourceLabels: []string{"exported_namespace"}, Regex: "(.+)", TargetLabel: "namespace"},
		{Regex: "exported_namespace", Action: "labeldrop"},
	}
	for _, file := range files {
		var monitor struct {
			Spec struct {
				Endpoints []struct {
					HonorLabels       bool
					MetricRelabelings []relabeling
				}
			}
		}
		if err := yaml.Unmarshal([]byte(readFile(t, file)), &monitor); err != nil || len(monitor.Spec.Endpoints) != 1 {
			t.Fatalf("%s: %v", file, err)
		}
		if one := monitor.Spec.Endpoints[0]; !one.HonorLabels || !reflect.DeepEqual(one.MetricRelabelings, want) {
			t.Errorf("%s: %+v", file, one)
		}
	}
}
