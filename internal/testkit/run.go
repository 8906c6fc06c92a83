package testkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/internal/testkit/pace"
)

const (
	runTimeout = 30 * time.Second
	// endTimeout is how long a dead operator may take to notice.
	endTimeout = 15 * time.Second
	// quiet is how long operators must send and receive nothing before a run is over. The
	// longest they are silent with work at hand is when a fresh one waits for its caches,
	// which client-go looks at every 100 ms.
	quiet = 250 * time.Millisecond
	// afterConflict is how long the loop waits for the event of the other write, which
	// after a conflict made up here never comes.
	afterConflict = time.Second
	// calmPolls is how often the scenario must be seen settled during the second half of
	// that: on a machine that is too busy to answer that many requests, an operator may
	// only be waiting for its turn.
	calmPolls = 4
)

// play is one run of a scenario under way.
type play struct {
	*Run
	sweep    *Sweep
	scenario *Scenario
	wire     *wire

	ctx  context.Context // ends with the run, its cause is what went wrong
	fail context.CancelCauseFunc

	mu        sync.Mutex
	over      bool
	instances []*instance
	log       runLog
	operators sync.WaitGroup
	helpers   sync.WaitGroup
}

// result is what became of a run.
type result struct {
	hit     *Write // the write that the plan was about, nil if there was none
	writes  []Write
	watched map[string]bool
	log     []string
	err     error
}

// play plays a scenario once, with one thing going wrong.
func (s *Sweep) play(ctx context.Context, server *APIServer, sc *Scenario, v variant, p plan) result {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	pl := &play{sweep: s, scenario: sc, ctx: ctx, fail: fail, log: runLog{began: time.Now()}}
	pl.wire = &wire{nameOf: s.NameOf, plan: p, delay: s.delay(), late: v.late, watched: map[string]bool{}, sorts: map[string]bool{}}
	nudges := make(chan struct{}, mostWrites)
	if v.late != nil {
		pl.wire.wrote = func() { nudges <- struct{}{} }
	}
	pl.wire.died = func(inst *instance) { pl.startOperator(fmt.Sprintf("operator %d is dead", inst.number)) }

	err := pl.prepare(server, v)
	if err == nil {
		pl.helpers.Go(func() { pl.nudge(nudges) })
		if sc.Before != nil {
			err = sc.Before(ctx, pl.Run)
		}
	}
	if err == nil {
		if !v.startsLate {
			pl.startOperators(v)
		}
		err = pl.story(v)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause // the story only noticed
	}
	err = errors.Join(err, pl.end())

	pl.wire.mu.Lock()
	defer pl.wire.mu.Unlock()
	res := result{watched: pl.wire.watched, log: pl.log.lines(), err: err}
	if pl.wire.hit != nil {
		hit := *pl.wire.hit
		res.hit = &hit
	}
	for _, w := range pl.wire.writes {
		res.writes = append(res.writes, *w)
	}
	return res
}

func (pl *play) prepare(server *APIServer, v variant) error {
	ns, err := server.newNamespace(pl.ctx, pl.scenario.Name+"-"+v.name, pl.scenario.policy)
	if err != nil {
		return fmt.Errorf("make a namespace: %w", err)
	}
	c := pl.sweep.client
	k := &Kubelet{}
	if !pl.scenario.OwnNodes {
		if k, err = StartKubelet(pl.ctx, server.Config, ns, pl.scenario.Pods); err != nil {
			return err
		}
		pl.helpers.Go(k.wait)
	}
	pl.Run = &Run{Namespace: ns, Client: c, Config: server.Config, Kubelet: k, wire: pl.wire}
	for _, kind := range pl.sweep.Kinds {
		w := &statusWatch{client: c, namespace: ns, kind: kind, each: pl.sweep.Each, lie: pl.fail}
		pl.helpers.Go(func() { w.run(pl.ctx) })
	}
	return nil
}

// story is the run from the user's first act to the last check.
func (pl *play) story(v variant) error {
	timeout := pl.scenario.Timeout
	if timeout == 0 {
		timeout = runTimeout
	}
	ctx, cancel := pace.WithTimeout(pl.ctx, timeout, errors.New("not settled"))
	defer cancel()
	until := func(what string, done func(context.Context, *Run) error) error {
		if _, err := pace.Until(ctx, 2*timeout, func() error { return done(ctx, pl.Run) }); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}

	if arrange := pl.scenario.Arrange; arrange != nil {
		if err := arrange(ctx, pl.Run); err != nil {
			return fmt.Errorf("arrange: %w", err)
		}
	}
	pl.log.add("user", "arranged")
	if v.startsLate {
		time.Sleep(ComesUp)
		pl.startOperators(v)
	}
	for i, step := range pl.scenario.Steps {
		name := fmt.Sprintf("step %d (%s)", i+1, step.Name)
		if step.When != nil {
			if err := until(name+" waits", pl.onNews(step.When)); err != nil {
				return err
			}
		}
		if err := step.Do(ctx, pl.Run); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		pl.log.add("user", name)
	}
	calm, needed := 0, v.quiet(pl.sweep.delay())
	if pl.wire.plan.fault == Conflict {
		needed += afterConflict
	}
	isSettled := pl.onNews(pl.scenario.Settled)
	settled := func(ctx context.Context, r *Run) error {
		silent := pl.wire.silentFor()
		if silent < needed/2 { // no poll as long as the answer may change
			calm = 0
			return fmt.Errorf("the operator does not come to rest: its last request or news was %s ago", silent.Round(time.Millisecond))
		}
		if err := isSettled(ctx, r); err != nil {
			return err
		}
		if calm++; silent < needed || calm < calmPolls {
			return errors.New("settled, but only just")
		}
		return nil
	}
	if err := until("waiting to be settled", settled); err != nil {
		return err
	}
	pl.log.add("sweep", "settled and quiet")
	if pl.scenario.Check != nil {
		if err := pl.scenario.Check(ctx, pl.Run); err != nil {
			return fmt.Errorf("check: %w", err)
		}
	}
	return nil
}

// onNews asks again after a no only when an operator has sent or received something, and not at
// once, or after a while: runs that ask all the time keep the API server busier than what they test.
func (pl *play) onNews(done func(context.Context, *Run) error) func(context.Context, *Run) error {
	const soon, while = 60 * time.Millisecond, 200 * time.Millisecond
	var asked time.Time
	var answer error
	return func(ctx context.Context, r *Run) error {
		since := time.Since(asked)
		if isNews := since >= soon && pl.wire.silentFor() < since; answer == nil || isNews || since >= while {
			asked = time.Now()
			answer = done(ctx, r)
		}
		return answer
	}
}

// ComesUp is how long after the user has arranged an operator starts whose writes are
// compared with those in a simulation: how long a real one takes to come up depends on the
// machine.
const ComesUp = 500 * time.Millisecond

func (pl *play) startOperators(v variant) {
	for range v.operators {
		pl.startOperator("the run begins")
	}
}

// startOperator starts a fresh operator, unless the run is over.
func (pl *play) startOperator(because string) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if pl.over {
		return
	}
	life, kill := context.WithCancel(context.WithoutCancel(pl.ctx))
	inst := &instance{number: len(pl.instances) + 1, life: life, kill: kill}
	pl.instances = append(pl.instances, inst)
	pl.log.add("sweep", fmt.Sprintf("operator %d starts: %s", inst.number, because))

	cfg := pl.Kubelet.Logs(pl.Config)
	cfg.Wrap(pl.wire.wrap(inst))
	cfg.UserAgent = fmt.Sprintf("operator-%d", inst.number)
	logger := funcr.New(func(prefix, args string) {
		if life.Err() == nil { // the dead log nothing
			pl.log.add(fmt.Sprintf("operator %d", inst.number), prefix+" "+strings.TrimPrefix(args, `"level"=0 `))
		}
	}, funcr.Options{})
	ctx := log.IntoContext(outside.With(life, inst.outside(pl.wire)), logger)

	pl.operators.Go(func() {
		err := pl.sweep.Start(ctx, cfg, pl.Namespace)
		if life.Err() == nil {
			pl.fail(fmt.Errorf("operator %d ended by itself: %w", inst.number, errors.Join(err, errEnded)))
		}
	})
}

var errEnded = errors.New("its Start returned before its context ended")

// nudge touches the operator's objects at each signal: in the late variants after each
// new sort of write, because a stale cache does harm only if something makes the operator
// look at it.
func (pl *play) nudge(signals <-chan struct{}) {
	for n := 1; await(pl.ctx, signals, nil); n++ {
		for _, kind := range pl.sweep.Kinds {
			list, err := listOf(kind, pl.Client.Scheme())
			if err == nil {
				err = pl.Client.List(pl.ctx, list, client.InNamespace(pl.Namespace))
			}
			for i := range list.Items {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"testkit/nudge":"%d"}}}`, n)
				err = errors.Join(err, client.IgnoreNotFound(
					pl.Client.Patch(pl.ctx, &list.Items[i], client.RawPatch(types.MergePatchType, patch))))
			}
			if err != nil && pl.ctx.Err() == nil {
				pl.fail(fmt.Errorf("nudge: %w", err))
				return
			}
		}
	}
}

// end kills what lives and waits until it is gone.
func (pl *play) end() error {
	pl.mu.Lock()
	pl.over = true
	instances := slices.Clone(pl.instances)
	pl.mu.Unlock()
	for _, inst := range instances {
		inst.kill()
	}
	ended := make(chan struct{})
	go func() { pl.operators.Wait(); close(ended) }()
	late, cancel := pace.WithTimeout(context.Background(), endTimeout, errors.New("an operator goes on after the end of its context"))
	defer cancel()
	if !await(late, ended, nil) {
		return context.Cause(late)
	}
	pl.log.add("sweep", "all operators ended")
	pl.fail(nil)
	pl.helpers.Wait()
	pl.log.add("sweep", "all helpers ended")
	return nil
}

// runLog is what happened in a run, for the message if it fails.
type runLog struct {
	began time.Time
	mu    sync.Mutex
	text  []string
}

func (l *runLog) add(who, what string) {
	line := fmt.Sprintf("%6.3fs %s: %s", time.Since(l.began).Seconds(), who, strings.TrimSpace(what))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, line)
}

func (l *runLog) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.text)
}
