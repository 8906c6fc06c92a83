package testkit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// coverage is which kinds of writes were made and cut, over all scenarios of a
// sweep; see [Write.Sort].
type coverage struct {
	mu    sync.Mutex
	sorts map[string]*marks
	where map[string]map[place]*made // in how many runs one was made
}

// playing is a scenario in one of its variants.
type playing struct {
	scenario *Scenario
	variant  variant
}

// place tells scenarios in their variants apart.
type place struct {
	scenario *Scenario
	variant  string
}

// made is in how many runs of a scenario in one of its variants a write was made.
type made struct {
	playing

	runs int
}

// marks are how the writes of a sort were cut.
type marks struct{ before, after bool }

// add takes in a run and how its hit, if it had one, was cut.
func (c *coverage) add(in playing, res result, cut string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sorts == nil {
		c.sorts, c.where = map[string]*marks{}, map[string]map[place]*made{}
	}
	at, of := place{in.scenario, in.variant.name}, map[string]bool{}
	for _, w := range res.writes {
		sort := w.Sort()
		if c.sorts[sort] == nil {
			c.sorts[sort], c.where[sort] = &marks{}, map[place]*made{}
		}
		of[sort] = true
	}
	for sort := range of {
		if c.where[sort][at] == nil {
			c.where[sort][at] = &made{playing: in}
		}
		c.where[sort][at].runs++
	}
	if res.hit != nil {
		if m := c.sorts[res.hit.Sort()]; m != nil {
			m.before = m.before || cut == before
			m.after = m.after || cut == afterwards
		}
	}
}

// A gap is a cut that no run made, although some run made the write.
type gap struct {
	playing

	sort, cut string
}

// gaps are the cuts that are missing of writes that some run made: which write is
// the n-th depends on how fast the machine is.
func (c *coverage) gaps() []gap {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []gap
	for _, sort := range slices.Sorted(maps.Keys(c.sorts)) {
		if !c.sorts[sort].before {
			all = append(all, gap{c.mostIn(sort), sort, before})
		}
		if !c.sorts[sort].after {
			all = append(all, gap{c.mostIn(sort), sort, afterwards})
		}
	}
	return all
}

// mostIn is where writes of a sort were made in the most runs, so that one is likely to be again.
func (c *coverage) mostIn(sort string) playing {
	var most made
	for _, m := range c.where[sort] {
		if m.runs > most.runs {
			most = *m
		}
	}
	return most.playing
}

// isOf says whether a sort of write is one of those names.
func isOf(sort string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return sort == name || strings.HasPrefix(sort, name+": ") })
}

// strangers are the writes that were made and have none of the names.
func (c *coverage) strangers(names ...[]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var problems []error
	for _, sort := range slices.Sorted(maps.Keys(c.sorts)) {
		if !isOf(sort, slices.Concat(names...)) {
			problems = append(problems, fmt.Errorf("%s: not one of the writes that the operator says it has", sort))
		}
	}
	return errors.Join(problems...)
}

// judge compares what was made and cut with the names of the writes that there are, and of those that
// are made only sometimes.
func (c *coverage) judge(names, sometimes []string) error {
	strangers := c.strangers(names, sometimes)
	c.mu.Lock()
	defer c.mu.Unlock()
	var problems []error
	known := slices.Sorted(maps.Keys(c.sorts))
	for _, name := range names {
		if !slices.ContainsFunc(known, func(sort string) bool { return isOf(sort, []string{name}) }) {
			problems = append(problems, fmt.Errorf("%s: no scenario gets there", name))
		}
	}
	for _, sort := range known {
		switch m := c.sorts[sort]; {
		case isOf(sort, sometimes) || !isOf(sort, names):
		case !m.before && !m.after:
			problems = append(problems, fmt.Errorf("%s: never cut", sort))
		case !m.before:
			problems = append(problems, fmt.Errorf("%s: never cut before the write", sort))
		case !m.after:
			problems = append(problems, fmt.Errorf("%s: never cut after the write", sort))
		}
	}
	return errors.Join(append(problems, strangers)...)
}
