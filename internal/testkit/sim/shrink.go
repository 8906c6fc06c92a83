package sim

import (
	"iter"
	"slices"

	"example.com/fairlead/internal/testkit"
)

// mostTries is how many histories are played to find a shorter one that has a few
// deviations of another: not at all if that one is short enough to be read.
const mostTries, shortEnough = 3000, 3

// shrink makes a history that fails one of fewer deviations, or of smaller ones, as long as
// there is such a one that fails as well: however it does.
func (s *Simulation) shrink(sc *testkit.Scenario, h History) History {
	idle := &coroutines{}
	defer idle.end()
	// first is the first one that fails.
	first := func(all iter.Seq[Deviations]) bool {
		for next := range all {
			tried := s.play(sc, told(next), idle, nil)
			if tried.Err != nil && tried.Deviations.isSmallerThan(h.Deviations) {
				h = tried
				return true
			}
		}
		return false
	}
	for first(h.Deviations.smaller()) {
	}
	tries := 0
	others := func(yield func(Deviations) bool) {
		for some := range h.Deviations.few() {
			c := told(some)
			c.record = true
			for _, one := range s.play(sc, c, idle, nil).singles() {
				if tries++; tries > mostTries || !yield(append(slices.Clone(some), one)) {
					return
				}
			}
		}
	}
	if len(h.Deviations) > shortEnough && first(others) {
		for first(h.Deviations.smaller()) {
		}
	}
	return h
}

// few are one or two of them.
func (d Deviations) few() iter.Seq[Deviations] {
	return func(yield func(Deviations) bool) {
		for i := range d {
			if !yield(Deviations{d[i]}) {
				return
			}
		}
		for i := range d {
			for j := range i {
				if !yield(Deviations{d[j], d[i]}) {
					return
				}
			}
		}
	}
}

// isSmallerThan compares how many there are, and then how much they are.
func (d Deviations) isSmallerThan(other Deviations) bool {
	if len(d) != len(other) {
		return len(d) < len(other)
	}
	sum, others := 0, 0
	for i := range d {
		sum, others = sum+d[i].Answer, others+other[i].Answer
	}
	return sum < others
}

// smaller are the next ones to be tried: first without many, at last without one of them.
func (d Deviations) smaller() iter.Seq[Deviations] {
	return func(yield func(Deviations) bool) {
		for size := len(d); size > 0; size /= 2 {
			for i := 0; i+size <= len(d); i++ {
				if !yield(slices.Delete(slices.Clone(d), i, i+size)) {
					return
				}
			}
		}
		// Without one of them others are asked for sooner or later than they were.
		for i := range d {
			for _, by := range []int{-1, 1, -2, 2, -3, 3} {
				fewer := slices.Delete(slices.Clone(d), i, i+1)
				if fewer.shift(d[i], by) && !yield(fewer) {
					return
				}
			}
		}
		for i := range d {
			for answer := 1; answer < d[i].Answer; answer++ {
				less := slices.Clone(d)
				less[i].Answer = answer
				if !yield(less) {
					return
				}
			}
		}
	}
}

// shift moves those that answer the same question later than one that is left out. It
// returns false if there are none.
func (d Deviations) shift(out Deviation, by int) (moved bool) {
	for i := range d {
		if d[i].Question == out.Question && d[i].N > out.N && d[i].N+by > 0 {
			d[i].N += by
			moved = true
		}
	}
	return moved
}
