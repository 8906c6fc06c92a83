package memcached

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// flush is `kubectl fairlead memcached flush`.
type flush struct {
	*cli.CLI
	sure      cli.Consent
	dry       cli.DryRun
	isGradual bool
	over      time.Duration
}

// sampleOf is how long reads are counted.
const sampleOf = 2 * time.Second

func flushCommand(c *cli.CLI) *cobra.Command {
	o := &flush{CLI: c}
	cmd := &cobra.Command{
		Use:   "flush NAME --gradually",
		Short: "Empty the servers, one after the other, spread over a time",
		Long: "Empty the servers one after the other, spread over a time, so that what is behind the\ncache never gets the reads of all servers at once. " +
			"Each server is told at once when its\nturn is (memcached's flush_all with a delay), so this program need not run until then. A\n" +
			"server that restarts before its turn forgets it.\n\nA server is emptied in one moment: with one server there is nothing to spread.",
		Example:           "  kubectl fairlead memcached flush sessions --gradually --over 30m",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteNames("memcached"),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&o.isGradual, "gradually", false, "One server after the other; there is no other way")
	cmd.Flags().DurationVar(&o.over, "over", 10*time.Minute, "From the first server to the last, such as 30m")
	o.sure.AddTo(cmd)
	o.dry.AddTo(cmd)
	return cmd
}

func (o *flush) run(ctx context.Context, name string) error {
	switch {
	case !o.isGradual:
		return errors.New("all servers at once would send all reads to what is behind the cache: add --gradually")
	case o.over < 0 || o.over > 24*time.Hour:
		return fmt.Errorf("--over=%s: must be between 0s and 24h", o.over)
	}
	if err := o.dry.Check(); err != nil {
		return err
	}
	k, namespace, err := o.Client()
	if err != nil {
		return err
	}
	var mc cachev1alpha1.Memcached
	if err := k.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &mc); err != nil {
		return cli.Explain(err)
	}
	pool, err := o.pool(ctx, k, &mc)
	if err != nil {
		return err
	}
	before := make([]int64, len(pool))
	for i := range pool {
		before[i] = pool[i].hits
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(sampleOf):
	}
	rates := make([]float64, len(pool))
	for i := range pool {
		if err := pool[i].refresh(); err != nil {
			return fmt.Errorf("server %s: %w", pool[i].name, err)
		}
		rates[i] = float64(pool[i].hits-before[i]) / sampleOf.Seconds()
	}
	return o.flush(name, pool, rates, spread(len(pool), o.over))
}

// flush says what will happen, asks, and does it.
func (o *flush) flush(name string, pool []server, rates []float64, delays []time.Duration) error {
	if err := o.announce(name, pool, rates, delays); err != nil {
		return err
	}
	for i, s := range pool {
		if o.dry.IsDry() {
			break
		}
		if err := s.port.do(fmt.Sprintf("flush_all %d\r\n", int64(delays[i].Seconds())), "OK"); err != nil {
			return fmt.Errorf("server %s was not flushed, nor those after it; those before it are: %w", s.name, err)
		}
	}
	_, err := fmt.Fprintf(o.Out, "memcached.cache.example.com/%s %s, the last server at %s\n", name, o.dry.Done("flushed"), o.Now().Add(delays[len(delays)-1]).Format("15:04:05"))
	return err
}

// pool are the servers. If one does not answer, none is flushed.
func (o *flush) pool(ctx context.Context, k client.Client, mc *cachev1alpha1.Memcached) ([]server, error) {
	var list corev1.PodList
	selector, err := labels.Parse(mc.Status.Selector)
	if err != nil {
		return nil, err
	}
	if err := k.List(ctx, &list, client.InNamespace(mc.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	servers := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !slices.Contains(mc.Status.Nodes, p.Name) })
	if len(servers) == 0 {
		return nil, fmt.Errorf("memcached/%s has no servers", mc.Name)
	}
	pool, err := askPool(ctx, o.CLI, k, mc, servers)
	if err != nil {
		return nil, err
	}
	for _, s := range pool {
		if s.problem != nil {
			return nil, fmt.Errorf("server %s does not answer, so nothing was done: %w", s.name, s.problem)
		}
	}
	return pool, nil
}

// spread are the delays of so many servers, the first now, the last after all of the time.
func spread(n int, over time.Duration) []time.Duration {
	delays := make([]time.Duration, n)
	for i := range delays {
		if n > 1 {
			delays[i] = (over * time.Duration(i) / time.Duration(n-1)).Truncate(time.Second)
		}
	}
	return delays
}

// announce says what will happen, and asks.
func (o *flush) announce(name string, pool []server, rates []float64, delays []time.Duration) error {
	var text strings.Builder
	var items int64
	var most float64
	w := printers.GetNewTabWriter(&text)
	_, _ = fmt.Fprintln(w, "SERVER\tEMPTIED\tITEMS\tHITS")
	for i, s := range pool {
		at := o.Now().Add(delays[i])
		_, _ = fmt.Fprintf(w, "%s\t%s, in %s\t%d\t%.1f/s\n", s.name, at.Format("15:04:05"), delays[i], s.items, rates[i])
		items += s.items
		most = max(most, rates[i])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var sum float64
	for _, rate := range rates {
		sum += rate
	}
	load := fmt.Sprintf("At each turn what is behind the cache gets up to %.1f reads/s more, until that server's items are back. "+
		"If that takes longer than the %s to the next turn, turns add up, to %.1f reads/s at most.", most, delays[min(1, len(delays)-1)], sum)
	if len(pool) == 1 {
		load = fmt.Sprintf("There is one server, so this is one moment: what is behind the cache gets up to %.1f reads/s more.", most)
	}
	what := fmt.Sprintf("%sEmpties memcached/%s: %d items are lost. %s", text.String(), name, items, load)
	if o.dry.IsDry() {
		_, err := fmt.Fprintln(o.ErrOut, what)
		return err
	}
	return o.Confirm(o.sure, what)
}
