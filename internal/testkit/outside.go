package testkit

import (
	"context"
	"fmt"
	"time"

	"example.com/fairlead/internal/kit/outside"
)

// outside takes calls to servers that are not the API server through the sweep: those that
// change something count, can be cut and can meet a fault like any other write.
func (i *instance) outside(w *wire) outside.Way {
	return func(ctx context.Context, call outside.Call, do func() error) error {
		if i.life.Err() != nil {
			return errKilled
		}
		w.stir(+1)
		defer w.stir(-1)
		request := Request{Verb: call.Verb, Resource: call.What, Name: call.Name}
		if !request.isWrite() {
			return do()
		}
		return w.deliver(ctx, i, request, func() (string, error) {
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
}
