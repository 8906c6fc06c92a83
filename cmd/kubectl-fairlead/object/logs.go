// Package object has the commands of `kubectl fairlead` about one object of any kind, beside status: logs and tree.
package object

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// logs is `kubectl fairlead logs`.
type logs struct {
	*cli.CLI
	cli.LogFlags
	mu sync.Mutex // one line at a time
}

// LogsCommand is `kubectl fairlead logs`.
func LogsCommand(c *cli.CLI) *cobra.Command {
	o := &logs{CLI: c}
	cmd := &cobra.Command{
		Use:   "logs KIND NAME",
		Short: "Print the logs of an object's pods, and what the manager logs about it",
		Long: "Print the logs of all pods of an object, and the lines in its manager's log that are about it.\n" +
			"Each line begins with its pod and container. Flags are those of kubectl logs.",
		Example:           "  kubectl fairlead logs etcdcluster db -f --tail=20\n  kubectl fairlead logs webserver/site --since=1h",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.CompleteObject,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.AddTo(cmd)
	return cmd
}

func (o *logs) run(ctx context.Context, args []string) error {
	kind, object, k, err := o.Object(ctx, args)
	if err != nil {
		return err
	}
	pods, err := o.Pods()
	if err != nil {
		return err
	}
	var of []source
	owned, err := cli.OwnedBy(ctx, k, object, cli.Ownable()[:6]) // pods, and what may own them
	errs := []error{err}
	owned.Each(0, func(one *cli.Owned, _ int) {
		pod := &corev1.Pod{}
		if one.Kind != "Pod" || k.Get(ctx, client.ObjectKeyFromObject(one), pod) != nil { // it is gone
			return
		}
		for _, container := range pod.Spec.Containers {
			of = append(of, source{pod, container.Name, nil})
		}
	})
	managers, err := o.Managers(ctx, k, object.GetNamespace())
	errs = append(errs, err)
	about := []string{`"` + kind.Kind + `"`, `"` + object.GetName() + `"`, `"` + object.GetNamespace() + `"`}
	for _, m := range managers {
		var list corev1.PodList
		if m.Does(kind.Operator) {
			errs = append(errs, k.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingLabels(m.Spec.Selector.MatchLabels)))
		}
		for i := range list.Items {
			of = append(of, source{&list.Items[i], m.Container.Name, about})
		}
	}
	var running sync.WaitGroup
	for _, s := range of {
		running.Go(func() {
			if err := o.lines(ctx, pods, s); err != nil && ctx.Err() == nil {
				o.mu.Lock()
				defer o.mu.Unlock()
				errs = append(errs, fmt.Errorf("pod %s, container %s: %w", s.pod.Name, s.container, err))
			}
		})
		if !o.Follow { // then one after the other
			running.Wait()
		}
	}
	running.Wait()
	return errors.Join(errs...)
}

// source is a container whose log is printed: the lines that have all these words.
type source struct {
	pod       *corev1.Pod
	container string
	words     []string
}

// lines prints the lines of a log, each as it comes.
func (o *logs) lines(ctx context.Context, pods *cli.Pods, s source) (err error) {
	stream, err := pods.Core.Pods(s.pod.Namespace).GetLogs(s.pod.Name, o.Options(s.container)).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	for reader := bufio.NewReader(stream); ; {
		line, err := reader.ReadString('\n')
		lacks := func(word string) bool { return !strings.Contains(line, word) }
		if line != "" && !slices.ContainsFunc(s.words, lacks) {
			o.mu.Lock()
			_, _ = fmt.Fprintf(o.Out, "[%s/%s] %s\n", s.pod.Name, s.container, strings.TrimSuffix(line, "\n"))
			o.mu.Unlock()
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
	}
}
