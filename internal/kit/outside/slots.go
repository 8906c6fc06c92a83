package outside

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Slots are how many may be at work at the same time. Who waits for another server has none meanwhile: however many
// servers are silent, they keep nobody from work who has nothing to do with them.
type Slots struct {
	mu   sync.Mutex
	free int
	// waiting are those who wait for one, in the order of coming. Nobody waits while one is free.
	waiting []*waiter
}

type waiter struct {
	priority func() int
	has      chan struct{} // closed once it has one
}

// NewSlots makes that many.
func NewSlots(n int) *Slots { return &Slots{free: n} }

// Do does something in a slot, for which it may have to wait: the higher its priority, which may change meanwhile, the
// less. Once the context ends nobody waits any more: what has not begun is not done, and the rest ends without a slot.
func (s *Slots) Do(ctx context.Context, priority func() int, do func(ctx context.Context)) {
	if !s.take(ctx.Done(), priority) {
		return
	}
	defer s.give()
	if ctx.Err() != nil {
		return
	}
	do(context.WithValue(ctx, slotKey{}, &slot{of: s, priority: priority, stop: ctx.Done()}))
}

// take waits for a slot; it returns false if there was none until the stop.
func (s *Slots) take(stop <-chan struct{}, priority func() int) bool {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return true
	}
	w := &waiter{priority, make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()

	select {
	case <-w.has:
		return true
	case <-stop:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.waiting, w)
	if at < 0 {
		return true // it got one at the same time
	}
	s.waiting = slices.Delete(s.waiting, at, at+1)
	return false
}

// give gives a slot back, or to the most urgent who waits, of several to the one who came first.
func (s *Slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	next, highest := 0, math.MinInt
	for i, w := range s.waiting {
		if priority := w.priority(); priority > highest {
			next, highest = i, priority
		}
	}
	close(s.waiting[next].has)
	s.waiting = slices.Delete(s.waiting, next, next+1)
}

// slot is one that is taken, but for while one or more calls wait in it.
type slot struct {
	of       *Slots
	priority func() int
	stop     <-chan struct{} // of the work, not of a call
	calls    atomic.Int32
}

type slotKey struct{}

// leave gives back the slot of a context, if it has one, until what it returns is called.
func leave(ctx context.Context) (back func()) {
	s, ok := ctx.Value(slotKey{}).(*slot)
	if !ok {
		return func() {}
	}
	if s.calls.Add(1) == 1 {
		s.of.give()
	}
	return func() {
		if s.calls.Add(-1) == 0 {
			s.of.take(s.stop, s.priority) // after a stop it ends without, and nobody counts any more
		}
	}
}
