package sim

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"example.com/fairlead/internal/testkit"
)

// RequireSame plays so many histories of some stories again and again: a seed has to make
// the same history each time, or no failure could be told. They are told twice, one after
// the other, and then played by two goroutines at once, without being told.
func (s *Simulation) RequireSame(t *testing.T, histories int, scenarios ...testkit.Scenario) {
	t.Helper()
	s.prepare(t)
	play := func(n int, idle *coroutines, trace func(string)) History {
		return s.play(&scenarios[n%len(scenarios)], seeded(uint64(n)+1), idle, trace)
	}
	what := func(n int) string {
		return fmt.Sprintf("story %s, seed %d", scenarios[n%len(scenarios)].Name, n+1)
	}
	wrote := make([][]string, histories)
	for n := range histories {
		var first, second []string
		h := play(n, nil, func(line string) { first = append(first, line) })
		play(n, nil, func(line string) { second = append(second, line) })
		wrote[n] = h.wrote()
		if i := firstDifference(first, second); i >= 0 {
			t.Errorf("%s: line %d is told as\n%s\nand then as\n%s", what(n), i+1, at(first, i), at(second, i))
			return
		}
	}
	var mu sync.Mutex
	var players sync.WaitGroup
	for first := range 2 {
		players.Go(func() {
			idle := &coroutines{}
			defer idle.end()
			for n := first; n < histories; n += 2 {
				again := play(n, idle, nil).wrote()
				if i := firstDifference(wrote[n], again); i >= 0 {
					mu.Lock()
					t.Errorf("%s: alone, write %d is %q, and beside another history %q", what(n), i+1, at(wrote[n], i), at(again, i))
					mu.Unlock()
				}
			}
		})
	}
	players.Wait()
}

// wrote is each write of a history with its fate, and at last how the history ended.
func (h History) wrote() []string {
	var lines []string
	for _, w := range h.Writes {
		lines = append(lines, fmt.Sprintf("operator %d: %s [%s] %s", w.Operator, w.Request, w.Part, w.Fate))
	}
	return append(lines, fmt.Sprintf("%d steps in %s: %v", h.Steps, h.Lasted, h.Err))
}

// firstDifference is where two texts differ first; below zero if they do not.
func firstDifference(a, b []string) int {
	if slices.Equal(a, b) {
		return -1
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}
