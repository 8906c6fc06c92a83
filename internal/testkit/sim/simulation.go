package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit"
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
	// Resources are those that the cluster has by group and version, as "name Kind".
	Resources map[string][]string
	// Controllers make those of the cluster, besides the garbage collector and the kubelet.
	Controllers func(w *World, r *testkit.Run) []Controller
	// Meddling is what others do to the cluster at any time, but for the stories that name
	// it in Without.
	Meddling []testkit.Step
	// MostOperators is how many may be at work at the same time; 3 if 0.
	MostOperators int

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
	usualHistories = 30_000
	namespace      = "default"
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
// deviations that make it fail, and with the command that plays it again.
func (s *Simulation) Run(t *testing.T, scenarios ...testkit.Scenario) {
	t.Helper()
	s.prepare(t)
	if replay := os.Getenv(replayVariable); replay != "" {
		s.replay(t, replay, scenarios)
		return
	}
	histories := number(t, historiesVariable, usualHistories)
	seed := number(t, seedVariable, 1)
	for i, sc := range scenarios {
		t.Run(sc.Name, func(t *testing.T) { s.explore(t, &sc, uint64(seed), histories/len(scenarios)+i*0) })
	}
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
		t.Error(s.explain(t, &sc, h))
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

func (s *Simulation) replay(t *testing.T, text string, scenarios []testkit.Scenario) {
	name, deviations, _ := strings.Cut(text, " ")
	i := slices.IndexFunc(scenarios, func(sc testkit.Scenario) bool { return sc.Name == name })
	as, err := ParseDeviations(deviations)
	if i < 0 || err != nil {
		t.Fatalf("%s=%q is no story and its deviations (%v)", replayVariable, text, err)
	}
	h := s.play(&scenarios[i], told(as), nil, func(line string) { t.Log(line) })
	if h.Err != nil {
		t.Error(h.Err)
	}
}

// explore plays a story in many histories, on all processors.
func (s *Simulation) explore(t *testing.T, sc *testkit.Scenario, seed uint64, histories int) {
	began := time.Now()
	plain := told(nil)
	plain.record = true
	first := s.play(sc, plain, nil, nil)
	if first.Err != nil {
		t.Fatal(s.explain(t, sc, first))
	}
	singles := spread(first.singles(), max(histories, fewestSingles), int(seed))
	var mu sync.Mutex
	var found []History
	var at, steps atomic.Int64
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() {
			idle := &coroutines{}
			defer idle.end()
			for {
				n := int(at.Add(1)) - 1
				if n >= len(singles)+histories {
					return
				}
				c := seeded(seed + uint64(n))
				if n < len(singles) {
					c = told(Deviations{singles[n]})
				}
				h := s.play(sc, c, idle, nil)
				steps.Add(int64(h.Steps))
				if h.Err != nil {
					mu.Lock()
					found = append(found, h)
					if len(found) >= mostFindings {
						at.Store(1 << 60)
					}
					mu.Unlock()
				}
			}
		})
	}
	players.Wait()
	for _, h := range found {
		t.Error(s.explain(t, sc, s.shrink(sc, h)))
	}
	took := time.Since(began)
	n := len(singles) + histories
	t.Logf("%d histories, %d of them with each single deviation, in %.1f s: %.0f a second, %d steps each",
		n, len(singles), took.Seconds(), float64(n)/took.Seconds(), steps.Load()/int64(max(1, n)))
}

// fewestSingles is how many single deviations are played at least, if there are as many.
const fewestSingles = 1000

// spread is every n-th of some deviations, so that there are at most that many; another
// seed has others.
func spread(all Deviations, most, seed int) Deviations {
	every := (len(all) + most - 1) / most
	if every < 2 {
		return all
	}
	var some Deviations
	for i := seed % every; i < len(all); i += every {
		some = append(some, all[i])
	}
	return some
}

// singles are all histories with one deviation from this one.
func (h History) singles() Deviations {
	var all Deviations
	for _, q := range questions {
		for i, answers := range h.Answers[q] {
			for a := 1; a < answers; a++ {
				all = append(all, Deviation{q, i + 1, a})
			}
		}
	}
	return all
}

// shrink leaves out deviations as long as the history fails.
func (s *Simulation) shrink(sc *testkit.Scenario, h History) History {
	for size := max(1, len(h.Deviations)/2); size > 0; {
		smaller := false
		for i := 0; i+size <= len(h.Deviations); {
			fewer := slices.Delete(slices.Clone(h.Deviations), i, i+size)
			if shorter := s.play(sc, told(fewer), nil, nil); shorter.Err != nil && len(shorter.Deviations) < len(h.Deviations) {
				h, smaller = shorter, true
			} else {
				i++
			}
		}
		if !smaller {
			size /= 2
		}
	}
	return h
}

// explain tells a history that failed.
func (s *Simulation) explain(t *testing.T, sc *testkit.Scenario, h History) string {
	var story []string
	again := s.play(sc, told(h.Deviations), nil, func(line string) { story = append(story, line) })
	var b strings.Builder
	fmt.Fprintf(&b, "story %s, %d deviations: %v\n\n", sc.Name, len(h.Deviations), h.Err)
	if again.Err == nil || again.Err.Error() != h.Err.Error() {
		fmt.Fprintf(&b, "(told once more, it ends otherwise: %v)\n\n", again.Err)
	}
	const most = 150
	if skipped := len(story) - most; skipped > 0 {
		story = append([]string{fmt.Sprintf("... %d lines ...", skipped)}, story[skipped:]...)
	}
	for _, line := range story {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	fmt.Fprintf(&b, "\nonce more: %s='%s %s' go test -count 1 -v -run '^%s$' %s\n", replayVariable, sc.Name, h.Deviations, test, testkit.PackageOfTest())
	return b.String()
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
}

func (p *player) begin(w *World, sc *testkit.Scenario) {
	p.world = w
	kubelet := testkit.NewSteppedKubelet(node{w}, sc.Pods)
	p.run = testkit.Simulated(namespace, w.Client("user"), w.Now, kubelet.Kubelet)
	w.Controllers = []Controller{NewCollector(w.Server), kubelet}
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
		}
		w.Fail(foreign(c, kinds, own))
		if p.Always != nil {
			w.Fail(p.Always(c, p.run))
		}
	}
}

// foreign returns what is wrong if an operator has written an object that is not its own:
// that one of its kinds does not control, nor, if nobody controls it, ever did, nor an
// operator made.
func foreign(c Change, kinds []*Kind, own map[types.UID]bool) error {
	isOperator := strings.HasPrefix(c.By, "operator")
	uid, ref := c.New.GetUID(), metav1.GetControllerOfNoCopy(c.New)
	if c.Old != nil {
		ref = metav1.GetControllerOfNoCopy(c.Old)
	}
	isControlled := ref != nil && slices.ContainsFunc(kinds, func(k *Kind) bool { return k.Kind == ref.Kind && k.GroupVersion().String() == ref.APIVersion })
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
	err := testkit.CheckConditions(c.New)
	if c.Old != nil {
		err = errors.Join(err, testkit.CheckTransition(c.Old, c.New))
	}
	if p.Each != nil {
		err = errors.Join(err, p.Each(c.Old, c.New))
	}
	return err
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
