package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// consent is the flag --yes.
type consent struct{ isSure bool }

func (s *consent) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&s.isSure, "yes", "y", false, "Do it without asking")
}

// confirm says what will happen, and returns nil if the user wants it: with --yes, or by the
// answer on a terminal.
func (c *cli) confirm(s consent, what string) error {
	if s.isSure {
		_, err := fmt.Fprintln(c.ErrOut, what)
		return err
	}
	in, isFile := c.In.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return fmt.Errorf("%s Nothing was done: there is no terminal to ask on; add --yes if that is intended", what)
	}
	if _, err := fmt.Fprintf(c.ErrOut, "%s\nContinue? [y/N] ", what); err != nil {
		return err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return errors.New("nothing was done: there was no answer")
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}

// waiting is the flags --wait and --timeout.
type waiting struct {
	isWanted bool
	timeout  time.Duration
}

func (w *waiting) addTo(cmd *cobra.Command, forWhat string) {
	cmd.Flags().BoolVar(&w.isWanted, "wait", false, "Wait until "+forWhat)
	cmd.Flags().DurationVar(&w.timeout, "timeout", 10*time.Minute, "How long to wait, such as 30m; the exit code is 124 after that")
}

// until looks at an object each second until it is as wanted, and prints what look says of it when that
// changes.
func (c *cli) until(ctx context.Context, w waiting, o client.Object, look func() (isDone bool, says string, err error)) error {
	k, _, err := c.client()
	if err != nil {
		return err
	}
	key, said, name := client.ObjectKeyFromObject(o), "", o.GetName()
	ctx, stop := context.WithTimeout(ctx, w.timeout)
	defer stop()
	for {
		err := k.Get(ctx, key, o)
		if err == nil {
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
			return exitError(124)
		}
		if err != nil {
			return explain(err)
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
