package load

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report says how much was done, and for how long writes did not come through.
type Report struct {
	// Counts are the operations by kind and outcome.
	Counts map[Kind]map[Outcome]int
	// Latencies are those of operations that were answered, by kind.
	Latencies map[Kind]Percentiles
	// LongestGap is the longest time without an acknowledged write, while writes were tried, and
	// GapStart when it began.
	LongestGap time.Duration
	GapStart   time.Time

	start  time.Time
	writes []Op // by return
}

// Percentiles are those of the times that operations took.
type Percentiles struct{ P50, P90, P99, Max time.Duration }

// NewReport makes the report on a history.
func NewReport(h History) Report {
	r := Report{Counts: map[Kind]map[Outcome]int{}, Latencies: map[Kind]Percentiles{}, start: h.Start}
	times := map[Kind][]time.Duration{}
	for _, op := range h.Ops {
		if r.Counts[op.Kind] == nil {
			r.Counts[op.Kind] = map[Outcome]int{}
		}
		r.Counts[op.Kind][op.Outcome]++
		if op.answered() {
			times[op.Kind] = append(times[op.Kind], op.Return-op.Call)
		}
		if op.Kind.changes() {
			r.writes = append(r.writes, op)
		}
	}
	for kind, t := range times {
		slices.Sort(t)
		at := func(percent int) time.Duration { return t[(len(t)-1)*percent/100] }
		r.Latencies[kind] = Percentiles{at(50), at(90), at(99), at(100)}
	}
	slices.SortStableFunc(r.writes, func(a, b Op) int { return cmp.Compare(a.Return, b.Return) })
	if n := len(r.writes); n > 0 {
		from, to := r.longest(0, r.writes[n-1].Return)
		r.LongestGap, r.GapStart = to-from, r.start.Add(from)
	}
	return r
}

// Gap is the longest time without an acknowledged write in a window, while writes were tried. A
// gap that goes beyond the window counts as far as it is in it.
func (r Report) Gap(from, to time.Time) time.Duration {
	a, b := r.longest(from.Sub(r.start), to.Sub(r.start))
	return b - a
}

// pause is how long no change may be under way before the load counts as paused.
const pause = time.Second

// longest is the longest time in a window between one answer to a change and the next, or the
// begin or end of the load.
func (r Report) longest(from, to time.Duration) (gapFrom, gapTo time.Duration) {
	byCall := slices.Clone(r.writes)
	slices.SortStableFunc(byCall, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
	for i := 0; i < len(byCall); {
		first, last := byCall[i].Call, byCall[i].Return
		for ; i < len(byCall) && byCall[i].Call <= last+pause; i++ {
			last = max(last, byCall[i].Return)
		}
		first, last = max(first, from), min(last, to)
		end := func(at time.Duration) {
			if at-first > gapTo-gapFrom {
				gapFrom, gapTo = first, at
			}
			first = at
		}
		for _, op := range r.writes { // by return
			if op.answered() && op.Return > first && op.Return <= last {
				end(op.Return)
			}
		}
		end(last)
	}
	return gapFrom, gapTo
}

// Unknown is how many operations that change something have an unknown outcome.
func (r Report) Unknown() int {
	n := 0
	for kind, counts := range r.Counts {
		if kind.changes() {
			n += counts[Unknown]
		}
	}
	return n
}

// Acknowledged is how many operations that change something were acknowledged.
func (r Report) Acknowledged() int {
	n := 0
	for i := range r.writes {
		if r.writes[i].acknowledged() {
			n++
		}
	}
	return n
}

func (r Report) String() string {
	var s strings.Builder
	for _, kind := range []Kind{Write, Swap, Delete, Read} {
		counts, took := r.Counts[kind], r.Latencies[kind]
		fmt.Fprintf(&s, "%-6s %6d done, %5d differ, %4d unknown, %4d refused; half within %v, 90%% within %v, 99%% within %v, all within %v\n",
			kind, counts[Done], counts[Differs], counts[Unknown], counts[Refused],
			took.P50.Round(100*time.Microsecond), took.P90.Round(100*time.Microsecond), took.P99.Round(100*time.Microsecond), took.Max.Round(100*time.Microsecond))
	}
	fmt.Fprintf(&s, "longest time without an acknowledged write: %v, from %s", r.LongestGap.Round(time.Millisecond), r.GapStart.Format("15:04:05.000"))
	return s.String()
}
