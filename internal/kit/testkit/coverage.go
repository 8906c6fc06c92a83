package testkit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// coverage is which lines wrote and were cut, over all scenarios of a sweep.
type coverage struct {
	mu      sync.Mutex
	lines   map[Site]*marks  // all lines on the stacks of writes
	wrote   map[Site]string  // the innermost of them, and what each wrote
	outside map[string]bool  // writes that no line of the operator made
	where   map[Site]playing // where a line was last reached
}

// playing is a scenario in one of its variants.
type playing struct {
	scenario *Scenario
	variant  variant
}

// marks are what happened at a line or a place.
type marks struct{ reached, cutBefore, cutAfter bool }

func (m *marks) add(o marks) {
	m.reached = m.reached || o.reached
	m.cutBefore = m.cutBefore || o.cutBefore
	m.cutAfter = m.cutAfter || o.cutAfter
}

// add takes in a run and how its hit, if it had one, was cut.
func (c *coverage) add(in playing, res result, cut string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines == nil {
		c.lines, c.wrote, c.outside, c.where = map[Site]*marks{}, map[Site]string{}, map[string]bool{}, map[Site]playing{}
	}
	mark := func(w Write, m marks) {
		for _, s := range w.Sites {
			if c.lines[s] == nil {
				c.lines[s] = &marks{}
			}
			c.lines[s].add(m)
			c.where[s] = in
		}
	}
	for _, w := range res.writes {
		mark(w, marks{reached: true})
		if what := w.Verb + " " + w.Resource; len(w.Sites) == 0 {
			c.outside[what] = true
		} else {
			c.wrote[w.Sites[0]] = what
		}
	}
	if res.hit != nil {
		mark(*res.hit, marks{cutBefore: cut == before, cutAfter: cut == afterwards})
	}
}

// A gap is a cut that no run made, although one got there.
type gap struct {
	playing

	at  place
	cut string
}

// gaps are the cuts that are missing at places that some run got to: which
// write is the n-th depends on how fast the machine is.
func (c *coverage) gaps(places []place) []gap {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []gap
	for _, p := range places {
		var m marks
		var in playing
		for s, of := range c.lines {
			if slices.Contains(innermost(places, s), p) {
				m.add(*of)
				in = c.where[s]
			}
		}
		if m.reached && !m.cutBefore {
			all = append(all, gap{in, p, before})
		}
		if m.reached && !m.cutAfter {
			all = append(all, gap{in, p, afterwards})
		}
	}
	return all
}

// judge compares what was cut with the places that the source shows.
func (c *coverage) judge(places []place) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	marked := map[place]*marks{}
	for _, p := range places {
		marked[p] = &marks{}
	}
	var wrong []error
	for s, m := range c.lines {
		at := innermost(places, s)
		for _, p := range at {
			marked[p].add(*m)
		}
		if what := c.wrote[s]; what != "" && len(at) == 0 {
			wrong = append(wrong, fmt.Errorf("%s sends %s, but nothing there looks like a write (see writeNames)", s, what))
		}
	}
	for _, p := range places {
		switch m := marked[p]; {
		case !m.reached:
			wrong = append(wrong, fmt.Errorf("%s: no scenario gets there", p))
		case !m.cutBefore && !m.cutAfter:
			wrong = append(wrong, fmt.Errorf("%s: never cut", p))
		case !m.cutBefore:
			wrong = append(wrong, fmt.Errorf("%s: never cut before the write", p))
		case !m.cutAfter:
			wrong = append(wrong, fmt.Errorf("%s: never cut after the write", p))
		}
	}
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(wrong...)
}

// innermost are the smallest places that hold a line: the line of a call
// within a call's function literal lies in both.
func innermost(places []place, s Site) []place {
	var best []place
	for _, p := range places {
		if !p.holds(s) {
			continue
		}
		if len(best) > 0 {
			size, least := p.Last-p.First, best[0].Last-best[0].First
			if size > least {
				continue
			}
			if size < least {
				best = nil
			}
		}
		best = append(best, p)
	}
	return best
}
