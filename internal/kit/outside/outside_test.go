package outside

import (
	"context"
	"slices"
	"sync"
	"testing"
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
