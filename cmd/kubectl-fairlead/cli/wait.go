package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Waiting is the flags --wait and --timeout.
type Waiting struct {
	// IsWanted says whether there is --wait.
	IsWanted bool

	timeout time.Duration
}

// AddTo adds the flags to a command.
func (w *Waiting) AddTo(cmd *cobra.Command, forWhat string) {
	cmd.Flags().BoolVar(&w.IsWanted, "wait", false, "Wait until "+forWhat)
	cmd.Flags().DurationVar(&w.timeout, "timeout", 10*time.Minute, "How long to wait, such as 30m; the exit code is 124 after that")
}

// Until looks at an object each second until it is as wanted, and prints what look says of it when that
// changes.
func (c *CLI) Until(ctx context.Context, w Waiting, o client.Object, look func() (isDone bool, says string, err error)) error {
	k, _, err := c.Client()
	if err != nil {
		return err
	}
	key, said, name := client.ObjectKeyFromObject(o), "", o.GetName()
	ctx, stop := context.WithTimeout(ctx, w.timeout)
	defer stop()
	outages := Outages{Now: c.Now}
	for {
		isThere, err := outages.Survive(ctx, func(ctx context.Context) error { return k.Get(ctx, key, o) })
		if isThere {
			var isDone bool
			var says string
			isDone, says, err = look()
			if says != "" && says != said {
				said = says
				_, _ = fmt.Fprintln(c.ErrOut, says)
			}
			if isDone {
				return err
			}
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_, _ = fmt.Fprintf(c.ErrOut, "error: %s is not done after %s\n", name, w.timeout)
			return ExitError(124)
		}
		if err != nil {
			return Explain(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
	}
}
