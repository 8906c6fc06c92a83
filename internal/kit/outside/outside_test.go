package outside

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestEach(t *testing.T) {
	// Each of them waits until all have begun: they run at the same time.
	var begun sync.WaitGroup
	begun.Add(3)
	Each(t.Context(), 3, func(context.Context, int) {
		begun.Done()
		begun.Wait()
	})

	ctx := With(t.Context(), func(_ context.Context, _ Call, do func() error) error { return do() })
	var order []int
	Each(ctx, 3, func(_ context.Context, i int) { order = append(order, i) })
	if !slices.Equal(order, []int{0, 1, 2}) {
		t.Errorf("where calls take a way, the order is %v", order)
	}
}

func TestGo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errs := make(chan error)
	Go(ctx, func(ctx context.Context) { errs <- ctx.Err() })
	if err := <-errs; err != nil {
		t.Errorf("in the background, the context has ended: %v", err)
	}

	var begun []func()
	did := false
	Go(WithBackground(ctx, func(do func()) { begun = append(begun, do) }), func(context.Context) { did = true })
	if len(begun) != 1 || did {
		t.Fatalf("%d were begun, and did is %t", len(begun), did)
	}
	if begun[0](); !did {
		t.Error("what was begun is not done")
	}
}

func normal() int { return 0 }

// TestSlots: who waits for another server has no slot, and all slots are taken and given back.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, hang := NewSlots(2), make(chan struct{})
		atWork, most, waiting := 0, 0, 0
		var mu sync.Mutex
		count := func(n *int, by int) {
			mu.Lock()
			defer mu.Unlock()
			*n += by
			most = max(most, atWork)
		}
		work := func() {
			count(&atWork, 1)
			time.Sleep(time.Second)
			count(&atWork, -1)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				slots.Do(t.Context(), normal, func(ctx context.Context) {
					work()
					Each(ctx, 3, func(ctx context.Context, _ int) {
						_ = Do(ctx, Call{}, func() error { // which would leave it as well
							count(&waiting, 1)
							<-hang
							return nil
						})
					})
					work()
				})
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if waiting != 15 || slots.free != 2 || atWork != 0 {
			t.Errorf("of five with three calls each, %d wait, and %d slots are free", waiting, slots.free)
		}
		other := 0
		slots.Do(t.Context(), normal, func(ctx context.Context) {
			Go(ctx, func(ctx context.Context) { _ = Do(ctx, Call{}, func() error { return nil }) }) // has no slot to leave
			synctest.Wait()
			other = 2 - slots.free
		})
		if other != 1 {
			t.Errorf("beside those that wait, one is at work in %d slots", other)
		}
		close(hang)
		all.Wait()
		if most != 2 || slots.free != 2 {
			t.Errorf("%d were at work at once in 2 slots; %d are left taken", most, 2-slots.free)
		}
	})
}

// TestSlotsOfTheUrgent: who waits for a slot gets it by priority, and of the same priority in the order of coming.
func TestSlotsOfTheUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := NewSlots(1)
		var all sync.WaitGroup
		var order []int
		var priorities [7]atomic.Int32
		for i, priority := range []int32{0, -100, -100, 0, 10, 0, -100} { // the first has the slot
			priorities[i].Store(priority)
			all.Go(func() {
				slots.Do(t.Context(), func() int { return int(priorities[i].Load()) }, func(context.Context) {
					time.Sleep(time.Second)
					order = append(order, i)
				})
			})
			synctest.Wait()
		}
		priorities[6].Store(5) // it changes as it waits
		all.Wait()
		if want := []int{0, 4, 6, 3, 5, 1, 2}; !slices.Equal(order, want) || slots.free != 1 || len(slots.waiting) != 0 {
			t.Errorf("the order is %v, want %v; %d are free, %d wait", order, want, slots.free, len(slots.waiting))
		}
	})
}

// TestSlotsEndWithTheContext: a stop ends the wait for a slot, at the start and after a call, and not the end of a call.
func TestSlotsEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, hang := NewSlots(1), make(chan struct{})
		var holder, all sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		answered := make(chan struct{})
		var after, never bool
		all.Go(func() {
			slots.Do(ctx, normal, func(ctx context.Context) {
				call, cancel := context.WithCancel(ctx)
				_ = Do(call, Call{}, func() error { <-answered; cancel(); return nil })
				after = true
			})
		})
		synctest.Wait()
		holder.Go(func() { slots.Do(t.Context(), normal, func(context.Context) { <-hang }) })
		synctest.Wait()
		all.Go(func() { slots.Do(ctx, normal, func(context.Context) { never = true }) })
		close(answered)
		synctest.Wait()
		if after || len(slots.waiting) != 2 {
			t.Errorf("%d wait for the slot, and one went on without: %t", len(slots.waiting), after)
		}
		stop()
		all.Wait() // while the slot is taken
		if !after || never {
			t.Errorf("after the stop, what had begun has ended: %t; what had not was done: %t", after, never)
		}
		close(hang)
		holder.Wait()
	})
}
