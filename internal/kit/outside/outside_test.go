package outside

import (
	"context"
	"slices"
	"sync"
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

// TestSlots: who waits for another server has no slot, and all slots are taken and given back.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, hang := make(Slots, 2), make(chan struct{})
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
				slots.Do(t.Context(), func(ctx context.Context) {
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
		if waiting != 15 || len(slots) != 0 || atWork != 0 {
			t.Errorf("of five with three calls each, %d wait, in %d slots", waiting, len(slots))
		}
		other := 0
		slots.Do(t.Context(), func(ctx context.Context) {
			Go(ctx, func(ctx context.Context) { _ = Do(ctx, Call{}, func() error { return nil }) }) // has no slot to leave
			synctest.Wait()
			other = len(slots)
		})
		if other != 1 {
			t.Errorf("beside those that wait, one is at work in %d slots", other)
		}
		close(hang)
		all.Wait()
		if most != 2 || len(slots) != 0 {
			t.Errorf("%d were at work at once in 2 slots; %d are left taken", most, len(slots))
		}
	})
}
