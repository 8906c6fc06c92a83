package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/draw"
	"example.com/fairlead/internal/testkit/standalone"
)

// Simulation plays the stories of an operator in many histories.
type Simulation struct {
	Operator run.Operator
	// CRDs are the folders with the operator's.
	CRDs []string
	// Kinds are those whose status must never lie, and Each is called for every version of
	// their objects, as in testkit.Sweep.
	Kinds []client.Object
	Each  func(before, now client.Object) error
	// Always, if set, is called after every change of the cluster: it returns what must
	// never be so.
	Always func(c Change, r *testkit.Run) error
	// Adopts, if set, says whether a change is one by which an operator may take over what it
	// has not made.
	Adopts func(c Change, r *testkit.Run) bool
	// Service, if set, is the name of the Service by which clients connect to an object of Kinds,
	// empty for one that is not to serve: what says that it is Ready or Available has to be served.
	Service func(client.Object) string
	// Resources are those that the cluster has by group and version, as "name Kind".
	Resources map[string][]string
	// Controllers make those of the cluster, besides the garbage collector and the kubelet.
	Controllers func(w *World, r *testkit.Run) []Controller
	// Meddling is what others do to the cluster at any time, but for the stories that name
	// it in Without.
	Meddling []testkit.Step
	// Histories is how many are played of all stories together, besides those with each
	// single deviation, where HISTORIES does not say.
	Histories int
	// MostOperators is how many may be at work at the same time; 3 if 0.
	MostOperators int
	// Reports, if set, is the operator's name of the write that tells what it sees, and that
	// nothing waits for: where between others it is depends on how fast the cluster is, so
	// Compare leaves it out.
	Reports string

	api *API
}

// In the environment: how many histories are played of all stories together, from which
// seed, and the one that is to be told: "<story> <deviations>".
const (
	historiesVariable = "HISTORIES"
	seedVariable      = "SEED"
	replayVariable    = "REPLAY"
)

const (
	namespace = "default"
	// mostFindings is when a story is given up.
	mostFindings = 2
)

// prepare makes what all histories share.
func (s *Simulation) prepare(t testing.TB) {
	t.Helper()
	if s.api != nil {
		return
	}
	debug.SetGCPercent(800) // a history is small, and soon over
	var err error
	if s.api, err = NewAPI(standalone.Scheme(s.Operator), s.CRDs...); err != nil {
		t.Fatal(err)
	}
}

// Run plays the stories: each as it is meant to go, then with each single deviation that
// is possible, and then with many at random. What fails is told in order, in the fewest
// deviations that make it fail, and with the command that plays it again. Where tests are drawn
// (package draw), so are the histories.
func (s *Simulation) Run(t *testing.T, scenarios ...testkit.Scenario) {
	t.Helper()
	s.prepare(t)
	if text := os.Getenv(replayVariable); text != "" {
		h, err := s.replay(text, scenarios, func(line string) { t.Log(line) })
		if err = errors.Join(err, h.Err); err != nil {
			t.Error(err)
		}
		return
	}
	histories := number(t, historiesVariable, s.Histories)
	seed := number(t, seedVariable, 1)
	for _, sc := range scenarios {
		t.Run(sc.Name, func(t *testing.T) { s.explore(t, &sc, uint64(seed), histories/len(scenarios)) })
	}
}

// Under plays each story as it is meant to go under each policy that clusters have, and in as many histories more as
// HISTORIES says.
func (s *Simulation) Under(t *testing.T, scenarios ...testkit.Scenario) {
	t.Helper()
	under := *s
	under.Histories = 0
	under.Run(t, underPolicies(scenarios)...)
}

// Again plays a story with these deviations, which made it fail once.
func (s *Simulation) Again(t *testing.T, sc testkit.Scenario, deviations string) {
	t.Helper()
	s.prepare(t)
	as, err := ParseDeviations(deviations)
	if err != nil {
		t.Fatal(err)
	}
	if h := s.play(&sc, told(as), nil, nil); h.Err != nil {
		t.Error(s.tell(t, &sc, h))
	}
}

func number(t *testing.T, variable string, usual int) int {
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%q is no number", variable, text)
	}
	return n
}

// explore plays a story in many histories, and has the test fail if one of them does.
func (s *Simulation) explore(t *testing.T, sc *testkit.Scenario, seed uint64, histories int) {
	began := time.Now()
	found, played := s.search(sc, seed, histories, mostFindings, func(number int) bool {
		return draw.Takes(fmt.Sprintf("%s/history-%d", sc.Name, number))
	})
	for _, h := range found {
		t.Error(s.tell(t, sc, s.shrink(sc, h.History)))
	}
	took := time.Since(began)
	t.Logf("%d histories, %d of them with each single deviation, in %.1f s: %.0f a second, %d steps each",
		played.histories, played.singles, took.Seconds(), float64(played.histories)/took.Seconds(), played.steps/int64(played.histories))
}

// play plays one history.
func (s *Simulation) play(sc *testkit.Scenario, c *choices, idle *coroutines, trace func(string)) History {
	return s.playAs(sc, c, idle, trace, false)
}

func (s *Simulation) playAs(sc *testkit.Scenario, c *choices, idle *coroutines, trace func(string), arrangeFirst bool) History {
	if idle == nil {
		idle = &coroutines{}
		defer idle.end()
	}
	p := &player{Simulation: s}
	bound := func(f func(context.Context, *testkit.Run) error) func(context.Context) error {
		if f == nil {
			return nil
		}
		return func(ctx context.Context) error { return f(ctx, p.run) }
	}
	bounds := func(steps []testkit.Step) (all []Step) {
		for _, step := range steps {
			all = append(all, Step{Name: step.Name, When: bound(step.When), Do: bound(step.Do)})
		}
		return all
	}
	var meddling []testkit.Step
	for _, step := range s.Meddling {
		if sc.Without[step.Name] == "" {
			meddling = append(meddling, step)
		}
	}
	story := &Story{
		API: s.api, Operator: s.Operator, NameOf: loop.NameOf, Resources: s.Resources, MostOperators: s.MostOperators,
		ArrangeFirst: arrangeFirst,
		Begin:        func(w *World) { p.begin(w, sc) },
		Before:       bound(sc.Before),
		Arrange:      bound(sc.Arrange), Steps: bounds(sc.Steps), Settled: bound(sc.Settled), Check: bound(sc.Check),
		Meddling: bounds(meddling),
	}
	if story.Check == nil {
		story.Check = func(context.Context) error { return nil }
	}
	return play(story, c, idle, trace)
}

// player is what one history keeps.
type player struct {
	*Simulation
	world *World
	run   *testkit.Run
	led   map[string]time.Duration // until when a Service led somewhere
}

func (p *player) begin(w *World, sc *testkit.Scenario) {
	p.world, p.led = w, map[string]time.Duration{}
	if sc.Admit != nil {
		w.Server.Admit = func(_ *Kind, old, obj client.Object) error { return sc.Admit(p.run, old, obj) }
	}
	kubelet := testkit.NewSteppedKubelet(node{w}, sc.Pods)
	p.run = testkit.Simulated(namespace, w.Client("user"), w.Now, kubelet.Kubelet)
	w.Controllers = []Controller{NewCollector(w.Server)}
	if !sc.OwnNodes {
		w.Controllers = append(w.Controllers, kubelet)
	}
	if p.Controllers != nil {
		w.Controllers = append(w.Controllers, p.Controllers(w, p.run)...)
	}
	var kinds []*Kind
	for _, obj := range p.Kinds {
		k, err := p.api.kindOf(obj)
		w.Fail(err)
		kinds = append(kinds, k)
	}
	own := map[types.UID]bool{} // that kinds control, or did, or that an operator made
	w.Server.Stored = func(c Change) {
		polling := w.polling
		w.polling = true // whoever looks now is answered at once
		defer func() { w.polling = polling }()
		if w.trace != nil && !strings.HasPrefix(c.By, "operator") && c.By != "user" {
			w.Tracef(c.By, "%s %s %s", strings.ToLower(string(c.Type)), c.Kind.Resource, c.New.GetName())
		}
		if slices.Contains(kinds, c.Kind) && c.Type != watch.Deleted {
			if w.trace != nil && c.Old != nil {
				w.Tracef(c.By, "changes %s %s:%s", c.Kind.Resource, c.New.GetName(), difference(c.Old, c.New))
			}
			w.Fail(p.judge(c))
			w.Fail(p.served(c))
		}
		if old, is := c.Old.(*discoveryv1.EndpointSlice); is && leadsSomewhere(old) {
			p.led[old.Labels[discoveryv1.LabelServiceName]] = w.passed()
		}
		if c.Old != nil && p.Adopts != nil && p.Adopts(c, p.run) {
			own[c.New.GetUID()] = true
		}
		w.Fail(foreign(c, kinds, own))
		if p.Always != nil {
			w.Fail(p.Always(c, p.run))
		}
	}
}

// foreign returns what is wrong if an operator has written an object that is not its own:
// that one of its kinds does not control, itself or through another object, nor, if nobody
// controls it, ever did, nor an operator made.
func foreign(c Change, kinds []*Kind, own map[types.UID]bool) error {
	isOperator := strings.HasPrefix(c.By, "operator")
	uid, ref := c.New.GetUID(), metav1.GetControllerOfNoCopy(c.New)
	if c.Old != nil {
		ref = metav1.GetControllerOfNoCopy(c.Old)
	}
	isControlled := ref != nil && (own[ref.UID] || slices.ContainsFunc(kinds, func(k *Kind) bool { return k.Kind == ref.Kind && k.GroupVersion().String() == ref.APIVersion }))
	if isControlled || c.Old == nil && isOperator {
		own[uid] = true
	}
	if !isOperator || isControlled || c.Old == nil || len(kinds) == 0 || ref == nil && own[uid] || slices.Contains(kinds, c.Kind) {
		return nil
	}
	return fmt.Errorf("%s wrote something foreign: %s %s, controlled by %v", c.By, c.Kind.Resource, c.New.GetName(), ref)
}

// difference is what of an object's JSON has changed, in few words.
func difference(old, obj client.Object) string {
	changes, err := apply.Differences(obj, old)
	if err != nil {
		return " " + err.Error()
	}
	var b strings.Builder
	for _, c := range changes {
		if c.Path != "metadata.resourceVersion" {
			fmt.Fprintf(&b, " %s is %v, was %v;", c.Path, c.To, c.From)
		}
	}
	return b.String()
}

// judge puts a version of an object to the rules for its status.
func (p *player) judge(c Change) error {
	err := errors.Join(testkit.CheckConditions(c.New), testkit.CheckHealth(c.New))
	if c.Old != nil {
		err = errors.Join(err, testkit.CheckTransition(c.Old, c.New))
	}
	if p.Each != nil {
		err = errors.Join(err, p.Each(c.Old, c.New))
	}
	return err
}

// unnoticed is for how long an operator may not know that a Service leads nowhere: its cache is late,
// and it stops before it writes.
const unnoticed = time.Minute

// served returns what is wrong if a version of an object is the first to say that it is Ready or
// Available, and clients that connect are refused, for longer than that.
func (p *player) served(c Change) error {
	said := ""
	for _, condition := range []string{"Ready", "Available"} {
		if p.Service != nil && testkit.BecameTrue(c.Old, c.New, condition) {
			said = condition
		}
	}
	if said == "" {
		return nil
	}
	service := p.Service(c.New)
	until, hasLed := p.led[service]
	isServed := service == "" || hasLed && p.world.passed()-until < unnoticed
	Each(p.world.Server, func(slice *discoveryv1.EndpointSlice) {
		isServed = isServed || slice.Labels[discoveryv1.LabelServiceName] == service && leadsSomewhere(slice)
	})
	if isServed {
		return nil
	}
	return fmt.Errorf("%s says that %s %s is %s, and Service %s leads nowhere", c.By, c.Kind.Kind, c.New.GetName(), said, service)
}

func leadsSomewhere(slice *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return *e.Conditions.Ready })
}

// node is what a kubelet acts on.
type node struct{ *World }

const nodeName = "pretend"

func (n node) Pods(f func(*corev1.Pod)) { Each(n.Server, f) }

func (n node) Bind(pod *corev1.Pod) {
	_ = n.Server.Bind(client.ObjectKeyFromObject(pod), nodeName, "scheduler")
}

func (n node) Report(pod *corev1.Pod) { n.Fail(n.Server.Report(pod, "kubelet")) }

func (n node) Remove(pod *corev1.Pod) { n.Fail(n.Server.Remove(pod, "kubelet")) }

func (n node) Prints(pod, text string) { n.Logs[pod] = text }
