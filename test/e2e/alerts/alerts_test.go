//go:build e2e

package alerts

import (
	"flag"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/test/e2e"
)

// patience is how long an alert may take: some are about the one object that is worst off, and wait for each other.
const patience = 5 * time.Minute

const needed = "Prometheus runs beside the cluster and reaches its pods"

// TestMain lets all causes be there at once, however many processors there are: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "100"); err != nil {
		panic(err)
	}
	os.Exit(e2e.Run(m))
}

// Other tests kill operators, and so delay or cause alerts: these two have the cluster to themselves.

// TestSerialAlertsAboutObjects causes the alerts about objects. By then each panel of the dashboards has something to show.
func TestSerialAlertsAboutObjects(t *testing.T) {
	e2e.NeedsLocalCluster(t, needed)
	keepReading(t)
	w := causeAll(t, objects)
	w.checkDashboards(t)
}

// TestSerialAlertsAboutOperators causes those that take an operator from all others.
func TestSerialAlertsAboutOperators(t *testing.T) { causeAll(t, managers) }

// causeAll sets off all causes together.
func causeAll(t *testing.T, causes map[string]cause) *world {
	t.Helper()
	e2e.NeedsLocalCluster(t, needed)
	w := newWorld(t)
	t.Run("causes", func(t *testing.T) {
		for name, c := range causes {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c.play(t, w)
			})
		}
	})
	w.checkRules(t)
	return w
}

// cause is how an alert, or several that have the same cause, come about.
type cause struct {
	// alerts are their names; of one that there is with several severities NAME/SEVERITY, and of one that is not about
	// the object NAME/.
	alerts []string
	// name is the name of the object that they are about, in the namespace of the scene. Empty if it is none.
	name string
	// labels are what they have beside.
	labels map[string]string
	// cause sets it off. It returns when that is done, whether or not there is an alert.
	cause func(s *scene)
	// mend does what a page describes in words. What it has commands for is done by them, after this.
	mend func(s *scene)
	// absent are objects that the commands of the pages look for, and that are not there in this case.
	absent string
}

// scene is where a cause is at work.
type scene struct {
	*testing.T

	namespace string
	// variables are those that pages use and that are no labels of the alert.
	variables map[string]string
	// end is for causes that know only when they begin how they are ended.
	end func()
}

func (c cause) play(t *testing.T, w *world) {
	t.Helper()
	s := &scene{T: t, namespace: e2e.NewNamespace(t), variables: map[string]string{}}
	began := time.Now()
	c.cause(s)
	caused := time.Since(began)
	firing := make([]notice, len(c.alerts))
	for i, alert := range c.alerts {
		firing[i] = w.fires(t, c.want(s, alert))
	}
	fired := time.Since(began)
	for i, n := range firing {
		if isOfObject := c.want(s, c.alerts[i])["namespace"] == s.namespace; isOfObject && !strings.Contains(n.Annotations["description"], s.namespace+"/"+c.name) {
			t.Errorf("the description of %s does not name the object: %s", c.alerts[i], n.Annotations["description"])
		}
		run(t, n, readRunbook(t, n).findOut, s.with(n.Labels), c.absent != "")
	}
	if c.mend != nil {
		c.mend(s)
	}
	for _, n := range firing {
		run(t, n, readRunbook(t, n).do, s.with(n.Labels), c.absent != "")
	}
	for _, alert := range c.alerts {
		w.ends(t, c.want(s, alert))
	}
	t.Logf("caused after %s, fired after %s, ended after %s: %s", caused.Round(time.Second), fired.Round(time.Second), time.Since(began).Round(time.Second), firing[0].Annotations["description"])
}

// want are the labels that an alert is to have.
func (c cause) want(s *scene, alert string) map[string]string {
	name, severity, isOther := strings.Cut(alert, "/")
	want := map[string]string{"alertname": name}
	if severity != "" {
		want["severity"] = severity
	}
	if c.name != "" && (severity != "" || !isOther) {
		want["namespace"], want["name"] = s.namespace, c.name
	}
	maps.Copy(want, c.labels)
	return want
}

// with are the variables of pages: the labels of the alert in capitals, and others.
func (s *scene) with(labels map[string]string) map[string]string {
	all := maps.Clone(s.variables)
	for label, value := range labels {
		all[strings.ToUpper(label)] = value
	}
	return all
}

func (s *scene) kubectl(args ...string) string {
	s.Helper()
	return e2e.Kubectl(s, append([]string{"-n", s.namespace}, args...)...)
}

func (s *scene) apply(manifest string) {
	s.Helper()
	e2e.Apply(s, s.namespace, manifest)
}

func (s *scene) patch(object, spec string) {
	s.Helper()
	s.kubectl("patch", object, "--type=merge", "-p", `{"spec":`+spec+`}`)
}

func (s *scene) ready(object string) {
	s.Helper()
	s.kubectl("wait", "--for=condition=Ready", object, e2e.Patience)
}
