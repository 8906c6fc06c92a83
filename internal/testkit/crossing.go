package testkit

import (
	"context"
	"fmt"
	"time"
)

type (
	crossingKey struct{}
	crossing    struct {
		wire *wire
		inst *instance
	}
)

// Cross takes a write through the sweep that does not go to the API server,
// such as an etcd member change: it counts, can be cut and can meet a fault
// like any other. The context is the one that Sweep.Start got, or one made
// from it; with any other, do is simply called.
func Cross(ctx context.Context, what Request, do func() error) error {
	c, ok := ctx.Value(crossingKey{}).(crossing)
	if !ok {
		return do()
	}
	if c.inst.life.Err() != nil {
		return errKilled
	}
	return c.wire.deliver(ctx, c.inst, what, func() (string, error) {
		if err := do(); err != nil {
			return err.Error(), err
		}
		return "done", nil
	}, func(f Fault) error {
		switch f {
		case LostAnswer:
			_ = do() // its answer is what gets lost
		case Hang:
			sleep(ctx, hangFor)
		default: // nothing is done
		}
		return fmt.Errorf("the sweep's %s at %s", f, time.Now().Format(time.TimeOnly))
	})
}
