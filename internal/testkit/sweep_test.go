package testkit

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"example.com/fairlead/internal/testkit/draw"
)

func TestExplore(t *testing.T) {
	const writes = 5
	cases := map[string]struct {
		v     variant
		fails bool
		want  []string // the first plans
		least int
		most  int
	}{
		"every write, before and after": {variant{name: "plain"}, false,
			[]string{"write-01-before", "write-01-after", "write-05-before", "write-05-after", "write-06-before"}, 11, 12},
		"every write, every fault": {variant{name: "faults", faults: true}, false,
			[]string{"write-01-conflict", "write-05-conflict", "write-06-lost-answer"}, 26, 30},
		"given up when all fails": {variant{name: "plain"}, true, []string{"write-01-before"}, mostFailures, mostFailures + 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var played []string
			(&Sweep{slots: make(chan struct{}, 4)}).explore(tc.v, func(p plan) (result, bool) {
				mu.Lock()
				defer mu.Unlock()
				played = append(played, p.String())
				res := result{writes: make([]Write, writes)}
				if p.n <= writes {
					res.hit = &Write{Number: p.n}
				}
				if tc.fails {
					res.err = errors.New("as always")
				}
				return res, true
			}, func(result, plan) {})

			for _, want := range tc.want {
				if !slices.Contains(played, want) {
					t.Errorf("%s was not played", want)
				}
			}
			if len(played) < tc.least || len(played) > tc.most {
				t.Errorf("%d runs, want %d to %d: %v", len(played), tc.least, tc.most, played)
			}
		})
	}
}

func TestExploreWithAFilter(t *testing.T) {
	played := 0
	(&Sweep{slots: make(chan struct{}, 1)}).explore(variant{name: "plain"}, func(p plan) (result, bool) {
		if p.String() != "write-07-after" { // as -run would have it
			return result{}, false
		}
		played++
		return result{hit: &Write{Number: 7}}, true
	}, func(result, plan) {})
	if played != 1 {
		t.Errorf("played %d times, want once", played)
	}
}

func TestVariants(t *testing.T) {
	s := &Sweep{Late: []string{"ats", "pods"}}
	names := func(all []variant) string {
		var text []string
		for _, v := range all {
			text = append(text, v.name)
		}
		return strings.Join(text, " ")
	}
	if got, want := names(s.variants()), "plain late-all late-ats late-pods twins faults"; got != want {
		t.Errorf("all variants are %q, want %q", got, want)
	}
	if got, want := names(s.variants("twins", "plain")), "plain twins"; got != want {
		t.Errorf("the chosen variants are %q, want %q", got, want)
	}
}

// TestPoints: what is done to a write in each variant.
func TestPoints(t *testing.T) {
	points := func() map[int]string {
		done := map[int]string{}
		for n := 1; n <= 4; n++ {
			var all []string
			for _, v := range (&Sweep{Late: []string{"ats", "pods"}}).variants() {
				for _, p := range v.points(n) {
					all = append(all, v.name+"/"+p.cut+string(p.fault))
				}
			}
			done[n] = strings.Join(all, " ")
		}
		return done
	}
	got := points()
	for n, want := range map[int]string{
		1: "plain/before plain/after late-pods/before twins/before faults/lost-answer",
		2: "plain/after late-all/after late-ats/after faults/too-many-requests",
		3: "plain/after late-pods/after twins/after faults/lost-answer",
		4: "plain/after late-all/before late-ats/before faults/server-error",
	} {
		if got[n] != want {
			t.Errorf("write %d:\n%s\nwant\n%s", n, got[n], want)
		}
	}

	t.Setenv(allVariable, "1")
	if n, want := len(strings.Fields(points()[1])), 2*5+len(Faults); n != want {
		t.Errorf("with %s=1 there are %d, want %d", allVariable, n, want)
	}
}

// TestEveryCutIsDrawn: what is done to a write in any variant is done at one of so many landings in a row.
func TestEveryCutIsDrawn(t *testing.T) {
	const writes = 50
	for _, v := range (&Sweep{Late: []string{"ats", "pods"}}).variants() {
		sc, drawn := &Scenario{Name: "a story"}, map[plan]int{}
		for seed := range draw.Landings {
			t.Setenv(draw.Seed, strconv.Itoa(1000+seed))
			for n := 1; n <= writes; n++ {
				for _, p := range drawnFrom(sc, v).points(n) {
					drawn[p]++
				}
			}
		}
		for n := 1; n <= writes; n++ {
			for _, p := range v.points(n) {
				if drawn[p] != 1 {
					t.Errorf("%s: %s is drawn %d times, want once", v.name, p, drawn[p])
				}
			}
		}
	}
}
