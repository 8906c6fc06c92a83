// Package pace makes the deadlines of tests as long as the machine is slow.
//
// A deadline that is right on an idle machine is wrong beside a large build,
// and one that is right there hides that something hangs. So the time that
// counts here is machine time: it passes as fast as that of the clock on a
// machine which is as fast as the one that the deadlines were chosen on and
// has nothing else to do, and slower on others. Twice a second a fixed piece of work
// is timed, which takes five milliseconds there: long enough to be interrupted
// where others want the processor, too. If it takes fifteen, machine time passes at a
// third of the speed; and a measurement that comes late, because this process was
// not given a processor, counts for no more than one that is in time.
//
// Only deadlines are made longer. What is to happen early, such as a pause
// that a test makes, keeps to the clock; and a figure that users are promised
// is measured by a benchmark, never by a test that fails when it is late.
package pace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"
)

const (
	// every is the time between two measurements.
	every = 500 * time.Millisecond
	// steps of work take this long on the reference: one core of a 2.6 GHz server
	// processor of 2023 (see BenchmarkWork).
	steps     = 2_100_000
	reference = 5 * time.Millisecond
	// slowest is the most by which deadlines grow. What takes longer hangs.
	slowest = 20
)

// meter adds up machine time.
type meter struct {
	once sync.Once
	mu   sync.Mutex
	time time.Duration
	slow float64 // 1 on the reference, or faster
	seen time.Time
}

var machine meter

// Now is the machine time since the first use of this package.
func Now() time.Duration {
	machine.start()
	machine.mu.Lock()
	defer machine.mu.Unlock()
	since := min(time.Since(machine.seen), every)
	return machine.time + time.Duration(float64(since)/machine.slow)
}

// Slowness says how many times slower the machine is than the reference, by the
// last measurement: at least 1.
func Slowness() float64 {
	machine.start()
	machine.mu.Lock()
	defer machine.mu.Unlock()
	return machine.slow
}

// Scale is how long this takes of the clock's time, at the speed of the last
// measurement.
func Scale(d time.Duration) time.Duration { return time.Duration(float64(d) * Slowness()) }

// Seconds is Scale for fields of that unit, which many deadlines of Kubernetes
// are: rounded up.
func Seconds(n int64) int64 { return int64(math.Ceil(Scale(time.Duration(n) * time.Second).Seconds())) }

// Deadline is a moment of machine time.
type Deadline struct {
	at    time.Duration
	limit time.Duration
	began time.Time
}

// In is the moment after that much machine time.
func In(limit time.Duration) Deadline {
	return Deadline{at: Now() + limit, limit: limit, began: time.Now()}
}

// Passed says whether the moment is over.
func (d Deadline) Passed() bool { return Now() >= d.at }

// String is the limit, and the time of the clock since the deadline was set.
func (d Deadline) String() string {
	return fmt.Sprintf("%s (%s of the clock; the machine is %.1f times slower than the reference)",
		d.limit, time.Since(d.began).Round(time.Millisecond), Slowness())
}

// WithTimeout is context.WithTimeoutCause in machine time. Its context says no
// deadline, because nobody knows it.
func WithTimeout(parent context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	deadline := In(limit)
	go func() {
		ticks := time.NewTicker(every / 5)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			if deadline.Passed() {
				cancel(fmt.Errorf("%w: not within %s", cause, deadline))
				return
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// Until calls check until it returns nil, and then says how long that took by the
// clock. Its error is the last one of check when the context ends or the machine
// time is over.
func Until(ctx context.Context, limit time.Duration, check func() error) (took time.Duration, err error) {
	return poll(ctx, limit, 0, check)
}

// Eventually is Until for a test, or what cleans up after it, which fails when
// check never returns nil. The pause after each call is twice as long as the call,
// up to a second: one that runs a program would otherwise keep a processor from
// what it waits for.
func Eventually(t testing.TB, limit time.Duration, check func() error) time.Duration {
	t.Helper()
	took, err := poll(context.Background(), limit, 2, check)
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// poll calls check every 20 ms, or pauses so many times as long as the call took.
func poll(ctx context.Context, limit, times time.Duration, check func() error) (took time.Duration, err error) {
	const period, longest = 20 * time.Millisecond, time.Second
	deadline := In(limit)
	for {
		began := time.Now()
		err := check()
		cost := time.Since(began)
		if err == nil {
			return time.Since(deadline.began), nil
		}
		if deadline.Passed() {
			return 0, fmt.Errorf("not within %s: %w", deadline, err)
		}
		select {
		case <-ctx.Done():
			return 0, errors.Join(context.Cause(ctx), err)
		case <-time.After(min(max(times*cost, period-cost), longest)):
		}
	}
}

// start begins to measure; it goes on as long as the process.
func (m *meter) start() {
	m.once.Do(func() {
		const moments = 4 // one says little
		for range moments {
			m.slow += measure() / moments
		}
		m.seen = time.Now()
		go func() {
			for range time.Tick(every) {
				m.add(measure(), time.Now())
			}
		}()
	})
}

// add counts the time since the last measurement. The slowness is a mean that
// forgets: a measurement counts for a few seconds.
func (m *meter) add(slow float64, now time.Time) {
	const memory = 0.8
	m.mu.Lock()
	defer m.mu.Unlock()
	m.time += time.Duration(float64(min(now.Sub(m.seen), every)) / m.slow)
	m.slow, m.seen = memory*m.slow+(1-memory)*slow, now
}

func measure() float64 {
	began := time.Now()
	Work()
	return min(max(float64(time.Since(began))/float64(reference), 1), slowest)
}

// Work is the piece of work that is timed. It computes without touching memory, so that the race
// detector does not make it slower.
func Work() {
	x := uint64(88172645463325252)
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	runtime.KeepAlive(x)
}
