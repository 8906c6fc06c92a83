package sim

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/fairlead/internal/testkit"
)

// Finding is a history that failed, in the fewest deviations that make it fail.
type Finding struct {
	History
	// After is how many histories were played until one failed.
	After int
	// Told is the history in order, in plain words.
	Told []string
	// Replay is the value of the environment variable REPLAY that plays it once more, and
	// Command the whole command.
	Replay, Command string

	scenario string
	again    error // of the history when it was told
}

// Find plays a story as [Simulation.Run] does, until a history fails. It returns false if
// none does: what it finds is no failure of the test.
func (s *Simulation) Find(t testing.TB, sc testkit.Scenario, histories int) (Finding, bool) {
	t.Helper()
	s.prepare(t)
	found, _ := s.search(&sc, 1, histories, 1, nil)
	if len(found) == 0 {
		return Finding{}, false
	}
	f := s.tell(t, &sc, s.shrink(&sc, found[0].History))
	f.After = found[0].number + 1
	return f, true
}

// numbered is a history of a search.
type numbered struct {
	History
	number int // from 0
}

// played is how much a search took.
type played struct {
	histories, singles int
	steps              int64
}

// search plays a story on all processors: as it is meant to go, with each single deviation
// and then at random. It returns the first few histories that fail, by their numbers: they
// are the same ones however many processors there are. Those with deviations can be a part only, by their numbers.
func (s *Simulation) search(sc *testkit.Scenario, seed uint64, histories, most int, takes func(number int) bool) (found []numbered, _ played) {
	plain := told(nil)
	plain.record = true
	first := s.play(sc, plain, nil, nil)
	if first.Err != nil {
		return []numbered{{first, 0}}, played{histories: 1, steps: int64(first.Steps)}
	}
	singles := spread(first.singles(), histories, int(seed))
	all := len(singles) + histories
	var mu sync.Mutex
	var at, steps, count atomic.Int64
	var isEnough atomic.Bool
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() {
			idle := &coroutines{}
			defer idle.end()
			// Numbers are taken in order, and whoever has one plays it: so none before a
			// finding is left out.
			for !isEnough.Load() {
				n := int(at.Add(1)) - 1
				if n >= all {
					return
				}
				if takes != nil && !takes(n) {
					continue
				}
				c := seeded(seed + uint64(n))
				if n < len(singles) {
					c = told(Deviations{singles[n]})
				}
				h := s.play(sc, c, idle, nil)
				steps.Add(int64(h.Steps))
				count.Add(1)
				if h.Err != nil {
					mu.Lock()
					found = append(found, numbered{h, n + 1})
					if len(found) >= most {
						isEnough.Store(true)
					}
					mu.Unlock()
				}
			}
		})
	}
	players.Wait()
	slices.SortFunc(found, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	return found[:min(len(found), most)], played{histories: 1 + int(count.Load()), singles: len(singles), steps: steps.Load()}
}

// spread is every n-th of some deviations, so that there are at most that many; another
// seed has others.
func spread(all Deviations, most, seed int) Deviations {
	if most <= 0 {
		return nil
	}
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

// tell plays a history that failed once more, and writes down what happens.
func (s *Simulation) tell(t testing.TB, sc *testkit.Scenario, h History) Finding {
	f := Finding{History: h, scenario: sc.Name, Replay: fmt.Sprintf("%s %s", sc.Name, h.Deviations)}
	f.again = s.play(sc, told(h.Deviations), nil, func(line string) { f.Told = append(f.Told, line) }).Err
	test, _, _ := strings.Cut(t.Name(), "/")
	f.Command = fmt.Sprintf("%s='%s' go test -count 1 -v -run '^%s$' %s", replayVariable, f.Replay, test, testkit.PackageOfTest())
	return f
}

// String is the message about a history that failed.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "story %s, %d deviations: %v\n\n", f.scenario, len(f.Deviations), f.Err)
	if f.again == nil || f.again.Error() != f.Err.Error() {
		fmt.Fprintf(&b, "(told once more, it ends otherwise: %v)\n\n", f.again)
	}
	story := f.Told
	const most = 150
	if skipped := len(story) - most; skipped > 0 {
		fmt.Fprintf(&b, "    ... %d lines ...\n", skipped)
		story = story[skipped:]
	}
	for _, line := range story {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	fmt.Fprintf(&b, "\nonce more: %s\n", f.Command)
	return b.String()
}

// replay plays the history that a [Finding] names.
func (s *Simulation) replay(text string, scenarios []testkit.Scenario, trace func(string)) (History, error) {
	name, deviations, _ := strings.Cut(text, " ")
	i := slices.IndexFunc(scenarios, func(sc testkit.Scenario) bool { return sc.Name == name })
	if i < 0 {
		return History{}, fmt.Errorf("%s=%q: there is no such story", replayVariable, text)
	}
	as, err := ParseDeviations(deviations)
	if err != nil {
		return History{}, fmt.Errorf("%s=%q: %w", replayVariable, text, err)
	}
	return s.play(&scenarios[i], told(as), nil, trace), nil
}
