package testkit

import "sync"

// explore plays n = 1, 2, 3, … in a variant until a run has no n-th write, or
// too many have failed. Runs go on at the same time as far as it is known that
// there is something to cut: a run that is over shows how many writes a run
// has, more or less.
func (s *Sweep) explore(v variant, play func(plan) (res result, played bool), note func(result, plan)) {
	e := &exploration{variant: v, horizon: 1, last: mostWrites}
	e.wake = sync.NewCond(&e.mu)
	var workers sync.WaitGroup
	for range cap(s.slots) {
		workers.Go(func() {
			for p, more := e.next(); more; p, more = e.next() {
				s.slots <- struct{}{}
				res, played := play(p)
				<-s.slots
				e.finished(p, res, played, note)
			}
		})
	}
	workers.Wait()
}

// exploration is how far a variant has come.
type exploration struct {
	variant variant

	mu      sync.Mutex
	wake    *sync.Cond
	queue   []plan // for write n
	n       int
	horizon int // there are writes to cut up to here, by all that is known
	last    int // and none from here on
	active  int // runs under way
	failed  int
}

// next is the next run to play. If it may be in vain, it waits for those that
// are under way to show whether it is.
func (e *exploration) next() (p plan, more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		for len(e.queue) == 0 && e.n <= e.last {
			e.n++
			e.queue = e.variant.points(e.n)
		}
		if e.n > e.last {
			return plan{}, false
		}
		if e.n <= e.horizon || e.active == 0 {
			break
		}
		e.wake.Wait()
	}
	p, e.queue = e.queue[0], e.queue[1:]
	e.active++
	return p, true
}

func (e *exploration) finished(p plan, res result, played bool, note func(result, plan)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.wake.Broadcast()
	e.active--
	if !played { // left out by -run, so nothing will be known
		e.horizon = mostWrites
		return
	}
	if res.err != nil {
		e.failed++
	}
	e.horizon = max(e.horizon, len(res.writes))
	if res.hit == nil {
		e.last = min(e.last, p.n-1)
	}
	if e.failed >= mostFailures {
		e.last = 0
	}
	note(res, p)
}

// exploreSorts plays with nothing going wrong, and then cuts the first write of each sort, after
// it: before it is made up for by [Sweep.RequireAllWritesCut], once for each sort.
func (s *Sweep) exploreSorts(v variant, play func(plan) (res result, played bool), note func(result, plan)) {
	var mu sync.Mutex
	one := func(p plan) result {
		s.slots <- struct{}{}
		res, played := play(p)
		<-s.slots
		mu.Lock()
		defer mu.Unlock()
		if played {
			note(res, p)
		}
		return res
	}
	cut := map[string]bool{}
	var runs sync.WaitGroup
	for _, w := range one(plan{}).writes {
		if sort := w.Sort(); !cut[sort] {
			cut[sort] = true
			if p := (plan{sort: sort, cut: afterwards}); v.takes(p) {
				runs.Go(func() { one(p) })
			}
		}
	}
	runs.Wait()
}
