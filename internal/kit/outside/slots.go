package outside

import (
	"context"
	"sync/atomic"
)

// Slots are how many may be at work at the same time. Who waits for another server has none meanwhile: however many
// servers are silent, they keep nobody from work who has nothing to do with them.
type Slots chan struct{}

// Do does something in a slot, for which it may have to wait.
func (s Slots) Do(ctx context.Context, do func(ctx context.Context)) {
	s <- struct{}{}
	defer func() { <-s }()
	do(context.WithValue(ctx, slotKey{}, &slot{of: s}))
}

// slot is one that is taken, but for while one or more calls wait in it.
type slot struct {
	of      Slots
	waiting atomic.Int32
}

type slotKey struct{}

// leave gives back the slot of a context, if it has one, until what it returns is called.
func leave(ctx context.Context) (back func()) {
	s, ok := ctx.Value(slotKey{}).(*slot)
	if !ok {
		return func() {}
	}
	if s.waiting.Add(1) == 1 {
		<-s.of
	}
	return func() {
		if s.waiting.Add(-1) == 0 {
			s.of <- struct{}{}
		}
	}
}
