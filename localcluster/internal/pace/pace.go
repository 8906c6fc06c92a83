// Package pace makes time-outs as long as the machine is slow, so that a
// cluster starts on a machine that is old, emulated, or busy with a build, and
// still says soon on any other one that something hangs.
//
// The time that counts is that of a machine which has nothing else to do and
// is as fast as the one that the time-outs were chosen on. Once a second, while
// somebody waits, a fixed piece of work is timed: if it takes four times as
// long as there, a second counts for a quarter. (The operators' testkit does
// the same; it is in another module.)
package pace

import (
	"fmt"
	"runtime"
	"time"
)

const (
	// every is the time between two measurements.
	every = time.Second
	// steps of work take this long on one core of a 2.6 GHz server processor of
	// 2023, see BenchmarkWork.
	steps     = 5_000_000
	reference = 10 * time.Millisecond
	// longest is what counts at most between two looks at a deadline: a process
	// that was not given a processor for a minute has not waited for a minute.
	longest = 10 * time.Second
)

// Deadline is a moment on the way to which a slow machine's time passes
// slowly, for one goroutine that looks at it again and again.
type Deadline struct {
	limit, spent    time.Duration
	began, seen     time.Time
	slow            float64
	measured        time.Time
	now             func() time.Time
	measureSlowness func() float64
}

// In is the moment after that much time.
func In(limit time.Duration) *Deadline {
	return in(limit, time.Now, Slowness)
}

func in(limit time.Duration, now func() time.Time, slowness func() float64) *Deadline {
	began := now()
	return &Deadline{limit: limit, began: began, seen: began, slow: 1, now: now, measureSlowness: slowness}
}

// Passed tells whether it is over.
func (d *Deadline) Passed() bool {
	if now := d.now(); now.Sub(d.measured) >= every {
		d.slow = d.measureSlowness()
		d.measured = d.now()
	}
	now := d.now()
	d.spent += time.Duration(float64(min(now.Sub(d.seen), longest)) / d.slow)
	d.seen = now
	return d.spent >= d.limit
}

// Stretch makes a time as long as the machine was slow at the last look.
func (d *Deadline) Stretch(t time.Duration) time.Duration {
	return time.Duration(float64(t) * d.slow)
}

// String is how long it has been by the clock, and why that long.
func (d *Deadline) String() string {
	took := d.now().Sub(d.began).Round(time.Second)
	if d.slow < 1.5 {
		return took.String()
	}
	return fmt.Sprintf("%s (the machine is slow or busy: %.1f times)", took, d.slow)
}

// Slowness is how many times slower than the reference the machine is just
// now, and at least 1.
func Slowness() float64 {
	began := time.Now()
	work()
	return max(1, float64(time.Since(began))/float64(reference))
}

func work() {
	x := uint64(88172645463325252)
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	runtime.KeepAlive(x) // or all of it would be optimised away
}
