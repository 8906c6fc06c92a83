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
