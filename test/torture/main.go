// Command torture breaks an EtcdCluster on the local cluster in every way that there is, while clients use it, and has
// etcd's own validators judge what the clients saw: `make torture`.
//
// It goes in rounds, because the validators want to see an etcd from its first revision on, and have to find an order of all
// operations. Each round has a new EtcdCluster of three members with volumes, and a few faults, one after the other; before
// each, all is as requested. In every third round, the members are a StatefulSet's at first, and the first fault is that they
// are taken over. Then the writes that the members have in their logs, the answers that clients got and the events of their
// watches have to fit: operations are linearizable, reads of a revision are right, and watches are ordered, unique, atomic,
// resumable, without gaps, and true to their progress notifications. See
// https://pkg.go.dev/go.etcd.io/etcd/tests/v3/robustness/validate.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/traffic"
	"go.uber.org/zap"
)

// versions are those that rounds begin with in turn, and change to.
var versions = []string{"3.6.16", "3.7.3"}

const (
	// faultsPerRound keeps a history short: what the validators need grows with more than its length.
	faultsPerRound = 2
	// undisturbed is for how long nothing happens before each fault and after the last one.
	undisturbed = 3 * time.Second
)

func main() {
	duration := flag.Duration("duration", 15*time.Minute, "for how long rounds are begun")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "what the order of the faults comes from")
	only := flag.String("only", "", "the `faults` to choose from, separated by commas, if not all")
	keep := flag.String("keep", os.TempDir(), "the `folder` for histories that are refused")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := torture(ctx, *duration, *seed, *only, *keep); err != nil {
		fmt.Fprintf(os.Stderr, "torture: %v\n", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// torture plays rounds, and says at the end what was judged.
func torture(ctx context.Context, duration time.Duration, seed uint64, only, keep string) error {
	if only != "" {
		faults = slices.DeleteFunc(faults, func(f fault) bool { return !slices.Contains(strings.Split(only, ","), f.name) })
	}
	if len(faults) == 0 {
		return fmt.Errorf("there is no fault %q", only)
	}
	lg, err := zap.Config{
		Level: zap.NewAtomicLevelAt(zap.ErrorLevel), Encoding: "console", OutputPaths: []string{"stderr"},
		EncoderConfig: zap.NewDevelopmentEncoderConfig(), DisableStacktrace: true,
	}.Build()
	if err != nil {
		return err
	}
	traffic.RequestTimeout = time.Second // of the usual 200 ms this machine needs more now and then
	fmt.Printf("seed %d\n", seed)
	d := &deck{rand: rand.New(rand.NewPCG(seed, 0))}
	began, rounds, total, injected := time.Now(), 0, figures{}, map[string]int{}
	for ; time.Since(began) < duration; rounds++ {
		r := round{
			name: fmt.Sprintf("torture-%d-%d", rounds+1, seed%1000), version: versions[rounds%len(versions)], keep: keep,
			lg: lg, injected: injected, isTakenOver: rounds%3 == 1,
		}
		f, err := r.play(ctx, d)
		total.add(f)
		if err != nil {
			return fmt.Errorf("round %d: %w", rounds+1, err)
		}
	}
	fmt.Printf("\n%d rounds in %s, all accepted by etcd's validators\n%s\n", rounds, time.Since(began).Round(time.Second), total)
	for _, f := range slices.Concat(faults, []fault{takenOver}) {
		fmt.Printf("%3d times %s\n", injected[f.name], f.name)
	}
	return nil
}

// round is one EtcdCluster.
type round struct {
	name, version, keep string
	lg                  *zap.Logger
	injected            map[string]int
	// isTakenOver has the cluster begin as somebody else's.
	isTakenOver bool
}

func (r round) play(ctx context.Context, d *deck) (f figures, err error) {
	logs, err := os.MkdirTemp("", "torture-logs-")
	if err != nil {
		return f, err
	}
	defer func() { _ = os.RemoveAll(logs) }()
	start := create
	if r.isTakenOver {
		start = createElsewhere
	}
	c, err := start(ctx, r.name, r.version, logs)
	if err != nil {
		return f, err
	}
	fmt.Printf("%s: %s of %s\n", time.Now().Format(time.TimeOnly), r.name, r.version)
	l, err := startLoad(ctx, r.lg, c.endpoints)
	if err != nil {
		return f, err
	}
	failure := r.disturb(ctx, c, d)
	clients, err := l.stop(ctx, c.endpoints)
	failure = errors.Join(failure, err, c.copyLogs(ctx))
	began := time.Now()
	dirs, err := c.dataDirs()
	if err = errors.Join(failure, err); err == nil {
		err = judge(r.lg, clients, dirs)
	}
	if err != nil {
		return f, errors.Join(err, r.save(clients, dirs))
	}
	f = count(clients)
	fmt.Printf("%s: accepted, judged in %s: %s\n", time.Now().Format(time.TimeOnly), time.Since(began).Round(time.Second), f)
	return f, c.remove(ctx)
}

// disturb injects faults, each when all is as requested.
func (r round) disturb(ctx context.Context, c *cluster, d *deck) error {
	for i := range faultsPerRound {
		time.Sleep(undisturbed)
		f, began := takenOver, time.Now()
		if i > 0 || !r.isTakenOver {
			f = d.next()
		}
		fmt.Printf("%s: %s", began.Format(time.TimeOnly), f.name)
		err := f.inject(ctx, c)
		if err == nil {
			fmt.Printf(", for %s", time.Since(began).Round(time.Second))
			err = c.whole(ctx)
		}
		fmt.Printf(", as requested after %s\n", time.Since(began).Round(time.Second))
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		r.injected[f.name]++
	}
	time.Sleep(undisturbed)
	return nil
}

// save keeps what was refused, in the form that etcd's own tests read again.
func (r round) save(clients []report.ClientReport, dirs []string) error {
	data := map[string]string{}
	for _, dir := range dirs {
		data[filepath.Base(dir)] = dir
	}
	folder := filepath.Join(r.keep, r.name)
	kept, err := report.NewTestReport(r.lg, folder, data, nil)
	if err != nil {
		return err
	}
	kept.SetClientReports(clients)
	fmt.Printf("what was recorded is in %s\n", folder)
	return kept.SaveEtcdData()
}
