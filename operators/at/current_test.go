package at

import (
	"slices"
	"testing"
	"time"
)

// TestReadings: many Ats that are due at the same instant are listed once; a list is used only for those that were due
// before it was begun, and not for long.
func TestReadings(t *testing.T) {
	type ask struct {
		due, now time.Duration // from noon on
		inCache  int
		want     string
	}
	const single, list, known = "read singly", "list them", "have the list"
	singles := func(n int, a ask) (asks []ask) {
		for range n {
			asks = append(asks, a)
		}
		return asks
	}
	many := slices.Clip(singles(readSingly-1, ask{inCache: 1000, want: single}))
	for name, asks := range map[string][]ask{
		"few":                          singles(3, ask{inCache: 3, want: single}),
		"many":                         append(many, ask{inCache: 1000, want: list}, ask{inCache: 1000, want: known}),
		"many, few of all":             append(many, singles(2, ask{inCache: 100_000, want: single})...),
		"those due later":              append(many, ask{inCache: 1000, want: list}, ask{due: time.Second, now: time.Second, want: single}),
		"those due before, and late":   append(many, ask{inCache: 1000, want: list}, ask{due: -time.Minute, now: time.Second, want: known}),
		"a list that is too old":       append(many, ask{inCache: 1000, want: list}, ask{now: readingLasts + time.Second, want: single}),
		"a clock that was turned back": append(many, ask{inCache: 1000, want: list}, ask{now: -time.Second, want: single}),
	} {
		t.Run(name, func(t *testing.T) {
			r := readings{byNamespace: map[string]*reading{}}
			for i, a := range asks {
				use, isToRead := r.of("default", noon.Add(a.due), noon.Add(a.now), func() int { return a.inCache })
				got := single
				switch {
				case isToRead:
					got = list
				case use != nil:
					got = known
				}
				if got != a.want {
					t.Errorf("At %d: %s, want %s", i, got, a.want)
				}
				if use, _ := r.of("elsewhere", noon.Add(a.due), noon.Add(a.now), func() int { return 1 << 20 }); use != nil {
					t.Errorf("At %d has a list of another namespace", i)
				}
			}
		})
	}
}
