package at

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/internal/timespec"
)

const waitLong = `Wait until an At is over, with a countdown if this is a terminal.

The exit code is 0 if the command succeeded, and the command's own if it failed
with one. It is 1 if there is none: the At was missed or removed, or its result is
unknown. It is 124 when --timeout is over, as for timeout(1).`

func waitCommand(c *cli.CLI) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:               "wait NAME",
		Short:             "Wait until an At is over, with a countdown",
		Long:              waitLong,
		Example:           "  kubectl at wait at-x7k2p && kubectl at logs at-x7k2p\n  kubectl at wait at-x7k2p --timeout=1h",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeAts(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, timeout)
				defer stop()
			}
			at, err := wait(ctx, c, args[0])
			switch {
			case errors.Is(ctx.Err(), context.DeadlineExceeded):
				_, _ = fmt.Fprintf(c.ErrOut, "error: %s is not over after %s\n", args[0], timeout)
				return cli.ExitError(124)
			case err != nil:
				return cli.Explain(err)
			case at.Status.Phase == atv1alpha1.Done:
				return nil
			case at.Status.ExitCode != nil && *at.Status.ExitCode != 0:
				return cli.ExitError(*at.Status.ExitCode)
			default:
				return cli.ExitError(1)
			}
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "How long to wait, such as 30m (default for ever)")
	return cmd
}

// wait shows what becomes of an At until it is over.
func wait(ctx context.Context, c *cli.CLI, name string) (*atv1alpha1.At, error) {
	now, err := c.Here()
	if err != nil {
		return nil, err
	}
	k, namespace, err := c.Client()
	if err != nil {
		return nil, err
	}
	changes := make(chan *atv1alpha1.At)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { ended <- follow(ctx, c, k, client.ObjectKey{Namespace: namespace, Name: name}, changes) }()

	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	shown := &progress{Line: cli.Line{CLI: c}}
	defer shown.Clear()
	var at *atv1alpha1.At
	for {
		select {
		case at = <-changes:
		case <-tick.C:
		case err := <-ended:
			return at, err
		}
		if at != nil {
			shown.tell(describe(c, at, c.Now().In(now.Location())), at.Status)
		}
	}
}

// follow sends what an At is like, and every change, until it is over. Between two watches it is read: one ends after some
// minutes, or when the API server goes away for a while.
func follow(ctx context.Context, c *cli.CLI, k client.WithWatch, key client.ObjectKey, changes chan<- *atv1alpha1.At) error {
	outages, hasSeen := cli.Outages{Now: c.Now}, false
	for {
		at := &atv1alpha1.At{}
		isThere, err := outages.Survive(ctx, func(ctx context.Context) error { return k.Get(ctx, key, at) })
		switch {
		case hasSeen && apierrors.IsNotFound(err):
			return fmt.Errorf("%s was removed", key.Name)
		case err != nil:
			return err
		case isThere:
			hasSeen = true
			if isOver, err := send(ctx, changes, at); isOver || err != nil {
				return err
			}
			if isOver, err := watchOne(ctx, &outages, k, at, changes); isOver || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// watchOne sends every change of an At since it was read, until the watch ends.
func watchOne(ctx context.Context, outages *cli.Outages, k client.WithWatch, at *atv1alpha1.At, changes chan<- *atv1alpha1.At) (isOver bool, err error) {
	var w watch.Interface
	watching, stop := context.WithCancel(ctx)
	defer stop()
	isThere, err := outages.Survive(ctx, func(within context.Context) (err error) {
		defer context.AfterFunc(within, stop)() // it goes on longer, once it has begun
		w, err = k.Watch(watching, &atv1alpha1.AtList{}, &client.ListOptions{
			Namespace: at.Namespace, Raw: &metav1.ListOptions{FieldSelector: "metadata.name=" + at.Name, ResourceVersion: at.ResourceVersion},
		})
		return err
	})
	if !isThere {
		return false, err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		at, isAt := e.Object.(*atv1alpha1.At)
		switch {
		case !isAt: // an error: the At is read again
			return false, nil
		case e.Type == watch.Deleted:
			return false, fmt.Errorf("%s was removed", at.Name)
		}
		if isOver, err := send(ctx, changes, at); isOver || err != nil {
			return isOver, err
		}
	}
	return false, ctx.Err()
}

func send(ctx context.Context, changes chan<- *atv1alpha1.At, at *atv1alpha1.At) (isOver bool, err error) {
	select {
	case changes <- at:
		return at.Status.Phase.Finished(), nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// progress shows one line that changes, on a terminal; elsewhere a line for each phase and reason.
type progress struct {
	cli.Line
	said string
}

func (p *progress) tell(text string, status atv1alpha1.AtStatus) {
	said := string(status.Phase) + status.Reason
	switch {
	case status.Phase.Finished():
		p.Clear()
		_, _ = fmt.Fprintln(p.Out, text)
	case p.IsTerminal:
		p.Show(text)
	case p.said != said:
		p.said = said
		_, _ = fmt.Fprintln(p.Out, text)
	}
}

// describe says in a line how it is with an At.
func describe(c *cli.CLI, at *atv1alpha1.At, now time.Time) string {
	ready, message := meta.FindStatusCondition(at.Status.Conditions, atv1alpha1.ConditionReady), ""
	if ready != nil && at.Status.Reason != "" {
		message = ": " + ready.Message
	}
	t := Scheduled(at)
	switch phase := at.Status.Phase; {
	case phase == atv1alpha1.Pending && at.Spec.Suspend:
		return at.Name + " is suspended"
	case phase == atv1alpha1.Pending && t.After(now):
		return fmt.Sprintf("%s runs %s, %s", at.Name, cli.Far(t, now), timespec.Say(t.In(now.Location())))
	case phase == atv1alpha1.Pending && ready == nil:
		return at.Name + " has not been seen by its operator"
	case phase == atv1alpha1.Pending:
		return at.Name + " is due" + message
	case phase == atv1alpha1.Running && at.Status.StartTime != nil:
		since := cli.Age(at.Status.StartTime.Time, now)
		return fmt.Sprintf("%s is %s, since %s%s", at.Name, coloured(c, phase), since, message)
	default:
		return fmt.Sprintf("%s is %s%s", at.Name, coloured(c, phase), message)
	}
}
