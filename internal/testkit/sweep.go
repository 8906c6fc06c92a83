package testkit

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/draw"
)

// Sweep plays scenarios with an operator that dies at every write; doc.go has
// the algorithm.
type Sweep struct {
	// Writes are the names of all writes that the operator makes, and NameOf finds
	// the name of the one that a request is part of, see [Write.Sort].
	Writes []string
	NameOf func(context.Context) string
	// Sometimes are the names of writes that are made in a moment which a run may miss. They are cut
	// where they are made, and nothing fails if they were not.
	Sometimes []string

	// Start runs a fresh operator for one namespace until the context ends.
	// Several run in this process, so: a manager of its own with metrics
	// address "0", SkipNameValidation, no leader election and no registering
	// in init. log.FromContext gives the logger whose lines are shown with a
	// run that failed.
	Start func(ctx context.Context, cfg *rest.Config, namespace string) error

	// Scheme is the user's, for Run.Client.
	Scheme *runtime.Scheme

	// Kinds are the kinds whose status must never lie, such as &v1alpha1.At{}.
	Kinds []client.Object

	// Each is called for every version of every object of those kinds, which has the Go
	// type that it has in Kinds; before is nil for the first. It may keep nothing.
	Each func(before, now client.Object) error

	// Late are the resources that the operator watches, such as "pods". Each gets a
	// variant in which the operator gets its events late.
	Late []string

	// Delay is by how much late is; 200 ms if 0.
	Delay time.Duration

	// Simulated says that a simulation plays the stories with everything that can go
	// wrong (package sim): here the variant plain remains, with SWEEP_ALL all of them.
	Simulated bool

	// EachSort cuts the first write of each sort, see [Write.Sort], rather than each write: for
	// stories that take long, and in which the same is requested until it is granted.
	EachSort bool

	// Parallel is how many runs there are at a time; 16 if 0. They mostly wait.
	Parallel int

	mu     sync.Mutex
	client client.WithWatch // of all runs, because each client requests all kinds anew
	slots  chan struct{}    // one for each run that may go on
	seen   coverage
}

const (
	lateBy = 200 * time.Millisecond
	atOnce = 16
	// mostWrites is where a run stops being a run and becomes a loop.
	mostWrites = 200
	// mostFailures is when a variant is given up: what else fails would say
	// the same again, and failing takes long.
	mostFailures = 3
	// allVariable requests both cuts of each write in all variants.
	allVariable = "SWEEP_ALL"
)

// variant is a way to play a scenario.
type variant struct {
	name      string
	operators int
	late      func(Request) bool // nil: nothing is
	isOneLate bool               // no more than one kind of objects is
	faults    bool               // instead of kills
	afterOnly bool               // what is before a write is after the one before it
	turn      *turn              // nil: everything is done to every write
	takes     func(plan) bool    // nil: no plan is left to other landings

	startsLate bool // the operators start once the user has arranged, see ComesUp
}

// A turn is what a variant does that shares the work with others like it: of so
// many writes it cuts this one, in one way.
type turn struct{ mine, of int }

// variants are those named, or all.
func (s *Sweep) variants(names ...string) []variant {
	all := []variant{{name: "plain", operators: 1, afterOnly: true}}
	if len(s.Late) > 0 {
		all = append(all, variant{name: "late-all", operators: 1, turn: &turn{0, 2}, late: func(Request) bool { return true }})
	}
	for i, resource := range s.Late {
		all = append(all, variant{name: "late-" + resource, operators: 1, isOneLate: true, turn: &turn{i, len(s.Late)},
			late: func(r Request) bool { return r.Resource == resource }})
	}
	all = append(all,
		variant{name: "twins", operators: 2, turn: &turn{1, 2}},
		variant{name: "faults", operators: 1, turn: &turn{0, 1}, faults: true})
	if os.Getenv(allVariable) != "" {
		for i := range all {
			all[i].turn, all[i].afterOnly = nil, false
		}
	}
	if len(names) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(v variant) bool { return !slices.Contains(names, v.name) })
}

// variantsOf are those that a scenario plays.
func (s *Sweep) variantsOf(sc *Scenario) []variant {
	return slices.DeleteFunc(s.variants(), func(v variant) bool {
		simulated := s.Simulated && v.name != "plain" && os.Getenv(allVariable) == ""
		return simulated || sc.Without[v.name] != "" || v.isOneLate && !sc.EachLate
	})
}

// quiet is for how long nothing must happen until a run is over.
func (v variant) quiet(delay time.Duration) time.Duration {
	if v.late != nil {
		return quiet + delay
	}
	return quiet
}

// turnOf is the fault that write n meets: every other write loses its answer.
func turnOf(n int) int {
	if n%2 == 1 {
		return 0
	}
	return 1 + n/2%(len(Faults)-1)
}

// points are what is done to write n, in runs of their own.
func (v variant) points(n int) []plan {
	return slices.DeleteFunc(v.allPoints(n), func(p plan) bool { return v.takes != nil && !v.takes(p) })
}

// drawnFrom is the part of a story's variant that this landing plays.
func drawnFrom(sc *Scenario, v variant) variant {
	v.takes = func(p plan) bool { return draw.Takes(strings.Join([]string{sc.Name, v.name, p.String()}, "/")) }
	return v
}

func (v variant) allPoints(n int) []plan {
	if v.faults {
		var all []plan
		for i, f := range Faults {
			if v.turn == nil || i == turnOf(n) {
				all = append(all, plan{n: n, fault: f})
			}
		}
		return all
	}
	cuts := []plan{{n: n, cut: before}, {n: n, cut: afterwards}}
	switch turn := v.turn; {
	case v.afterOnly && n > 1:
		return cuts[1:]
	case turn == nil:
		return cuts
	case n%turn.of != turn.mine:
		return nil
	default:
		one := (n / turn.of) % 2
		return cuts[one : one+1]
	}
}

func (p plan) String() string {
	switch {
	case p == plan{}:
		return "nothing-cut"
	case p.sort != "":
		return p.sort + "-" + p.cut
	}
	return fmt.Sprintf("write-%02d-%s%s", p.n, p.cut, p.fault)
}

// Run plays the scenarios in all variants, side by side, as subtests named
// <scenario>/<variant>/write-<n>-<before, after or the fault>.
func (s *Sweep) Run(t *testing.T, scenarios ...Scenario) {
	t.Helper()
	server := s.prepare(t)
	var runs sync.WaitGroup
	for _, sc := range scenarios {
		for _, v := range s.variantsOf(&sc) {
			runs.Go(func() {
				t.Run(sc.Name+"/"+v.name, func(t *testing.T) { s.runVariant(t, server, &sc, v) })
			})
		}
	}
	runs.Wait()
}

// Trace plays a scenario with nothing going wrong, and returns what the operator wrote. It
// starts [ComesUp] after the user has arranged.
func (s *Sweep) Trace(t *testing.T, sc Scenario) []Write {
	t.Helper()
	server := s.prepare(t)
	v := variant{name: "trace", operators: 1, startsLate: true}
	s.slots <- struct{}{}
	res := s.play(t.Context(), server, &sc, v, plan{})
	<-s.slots
	if res.err != nil {
		t.Error(s.explain(t.Name(), &sc, v, plan{}, res))
	}
	return res.writes
}

func (s *Sweep) runVariant(t *testing.T, server *APIServer, sc *Scenario, v variant) {
	explore := s.explore
	if s.EachSort {
		explore = s.exploreSorts
	}
	v = drawnFrom(sc, v)
	runs, began := 0, time.Now()
	explore(v, func(p plan) (res result, played bool) {
		t.Run(p.String(), func(t *testing.T) {
			played = true
			res = s.play(t.Context(), server, sc, v, p)
			if res.err != nil {
				t.Error(s.explain(t.Name(), sc, v, p, res))
			}
		})
		return res, played
	}, func(res result, p plan) {
		runs++
		s.note(t, sc, v, res, p)
	})
	t.Logf("%d runs in %.1f s", runs, time.Since(began).Seconds())
}

// note keeps what a run shows about the whole sweep.
func (s *Sweep) note(t *testing.T, sc *Scenario, v variant, res result, p plan) {
	s.seen.add(playing{sc, v}, res, p.cut)
	if res.hit != nil && p.n == mostWrites {
		t.Errorf("a run had %d writes and went on: the operator does not come to rest", mostWrites)
	}
	if resource, ok := strings.CutPrefix(v.name, "late-"); ok && resource != "all" && res.err == nil && !res.watched[resource] {
		t.Errorf("Late names %s, but the operator watches %v", resource, slices.Sorted(maps.Keys(res.watched)))
	}
}

// RequireAllWritesCut fails for every write among Writes that no scenario makes, for
// every one that is made and not among them, and for every sort of write that no run
// was cut at, both before and after. What the runs so far left out, although they
// made it, is made up for, as subtests named <scenario>/<variant>/<sort>-<before or
// after>. Where cuts are drawn (package draw), so is what is made up for, and only a write that is not
// among Writes fails.
func (s *Sweep) RequireAllWritesCut(t *testing.T) {
	t.Helper()
	if filter := flag.Lookup("test.run").Value.String(); strings.Contains(filter, "/") {
		t.Logf("only a part of the sweep ran (-run %s): which writes were cut is not judged", filter)
		return
	}
	s.fill(t, slices.DeleteFunc(s.seen.gaps(), func(g gap) bool { return !draw.Takes(g.sort + "-" + g.cut) }))
	judge := func() error { return s.seen.judge(s.Writes, s.Sometimes) }
	if draw.IsOn() {
		judge = func() error { return s.seen.strangers(s.Writes, s.Sometimes) }
	}
	if err := judge(); err != nil {
		t.Errorf("writes that the sweep did not cut:\n%v", err)
	}
}

// fill plays what is missing, a few times if a run does not get there.
func (s *Sweep) fill(t *testing.T, gaps []gap) {
	const tries = 3
	var runs sync.WaitGroup
	for _, g := range gaps {
		runs.Go(func() {
			p, in := plan{sort: g.sort, cut: g.cut}, g.playing
			in.variant.faults = false
			t.Run(strings.Join([]string{in.scenario.Name, in.variant.name, p.String()}, "/"), func(t *testing.T) {
				for hit, n := false, 0; !hit && n < tries; n++ {
					s.slots <- struct{}{}
					res := s.play(t.Context(), Server(t), in.scenario, in.variant, p)
					<-s.slots
					if res.err != nil {
						t.Error(s.explain(t.Name(), in.scenario, in.variant, p, res))
						return
					}
					s.note(t, in.scenario, in.variant, res, p)
					hit = res.hit != nil
				}
			})
		})
	}
	runs.Wait()
}

// prepare makes what all runs of the sweep share.
func (s *Sweep) prepare(t *testing.T) *APIServer {
	t.Helper()
	server := Server(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return server
	}
	var err error
	if s.client, err = client.NewWithWatch(server.Config, client.Options{Scheme: s.Scheme}); err != nil {
		t.Fatal(err)
	}
	parallel := s.Parallel
	if parallel == 0 {
		parallel = atOnce
	}
	s.slots = make(chan struct{}, parallel)
	return server
}

func (s *Sweep) delay() time.Duration {
	if s.Delay > 0 {
		return s.Delay
	}
	return lateBy
}

// explain is all that one needs to know of a run that failed.
func (s *Sweep) explain(test string, sc *Scenario, v variant, p plan, res result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "scenario %s, variant %s, ", sc.Name, v.name)
	switch hit := res.hit; {
	case hit == nil:
		fmt.Fprintf(&b, "nothing went wrong (there was no %s)\n", p)
	case p.cut != "":
		fmt.Fprintf(&b, "operator %d killed %s write %d: %s (%s)\n", hit.Operator, p.cut, hit.Number, hit.Request, hit.Sort())
	default:
		fmt.Fprintf(&b, "write %d met %s: %s (%s)\n", p.n, p.fault, hit.Request, hit.Sort())
	}
	fmt.Fprintf(&b, "\n%s\n\nwrites:\n", indent([]string{res.err.Error()}))
	for _, w := range res.writes {
		fmt.Fprintf(&b, "    %2d operator %d %-40s %-24s %s\n", w.Number, w.Operator, w.Request, w.Sort(), w.Fate)
	}
	const most = 60
	if skipped := len(res.log) - most; skipped > 0 {
		fmt.Fprintf(&b, "what happened (after %d more lines):\n", skipped)
		res.log = res.log[skipped:]
	} else {
		fmt.Fprintln(&b, "what happened:")
	}
	if p.sort != "" { // only a whole sweep gets to it
		test, _, _ = strings.Cut(test, "/")
	}
	fmt.Fprintf(&b, "%s\nonce more: go test -tags apiserver -count 1 -run '^%s$' %s\n",
		indent(res.log), strings.ReplaceAll(test, "/", "$/^"), PackageOfTest())
	return b.String()
}

// PackageOfTest is the import path of the package that is being tested.
func PackageOfTest() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "."
	}
	return strings.TrimSuffix(info.Path, ".test")
}

func indent(lines []string) string {
	return "    " + strings.ReplaceAll(strings.Join(lines, "\n"), "\n", "\n    ")
}
