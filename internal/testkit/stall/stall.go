// Package stall keeps a machine that stands still from being taken for a
// failure of what is tested, or for its success.
//
// A test that judges time, or that no request is lost, says something only if
// the machine lets the client, the cluster and its servers run. So such a test
// is called TestAlone…, make ci runs nothing beside it, and each of its
// steps is an argument of [Judge]: a step during which the machine stalled for
// seconds is inconclusive, whatever its result, and is done once more.
//
// # How a stall is measured
//
// A thread of its own sleeps, does a fixed piece of work of five milliseconds
// ([pace.Work]) and looks at the clock, ten times a second. What the round took
// beyond that is how long the machine kept the thread from going on. A round
// that is late by a fifth of a second or more is a stall, and all of its lateness
// counts. The machine stalled for seconds if that adds up to [Limit] in one minute. With two
// builds on two cores a round is late by a tenth of a second at most; with 40 busy
// loops on them half of the time counts.
//
// The work is there because Linux wakes a sleeper at once, however many others
// want the processor: it shows only when the thread wants the processor for longer than the
// scheduler gives it at a time. The wall clock is looked at as well as the monotonic one,
// which may not go on while a machine is suspended.
//
// It sees a machine that is suspended, or that its host gives no time, and a
// processor that is wanted by dozens of processes of the same session or control
// group. Those of another one together get no more of the processor than all of this
// one (Linux's autogroups), which makes the test slower and does not stop it: that is
// not seen. Nor is a slow disk, or a cluster whose own processes are too many.
package stall

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"example.com/fairlead/internal/testkit/pace"
)

// Limit is for how long a machine may stall in any minute of a step that is to be judged.
const Limit = 2 * time.Second

const (
	window = time.Minute
	pause  = 95 * time.Millisecond
	// normal is how long a round takes on the reference of package pace.
	normal = 100 * time.Millisecond
	// least is how late a round is that counts.
	least = 200 * time.Millisecond
)

// Measure begins to measure. The function that it returns ends that, and says
// for how long the machine stalled in the worst minute meanwhile.
func Measure() (end func() time.Duration) {
	began := time.Now()
	m := meter{
		now: func() (monotonic, wall time.Duration) {
			now := time.Now()
			return now.Sub(began), now.Round(0).Sub(began.Round(0))
		},
		pause: func() { time.Sleep(pause) },
		work:  pace.Work,
	}
	stop := make(chan struct{})
	var thread sync.WaitGroup
	thread.Go(func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the function
		m.run(stop)
	})
	return func() time.Duration {
		close(stop)
		thread.Wait() // the round may be stalled right now
		return m.worst
	}
}

// meter adds up stalls.
type meter struct {
	now    func() (monotonic, wall time.Duration)
	pause  func()
	work   func()
	recent []late // within the window
	worst  time.Duration
}

// late is a round that counts.
type late struct{ end, by time.Duration }

func (m *meter) run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
			m.round()
		}
	}
}

func (m *meter) round() {
	monotonic, wall := m.now()
	m.pause()
	m.work()
	monotonicAfter, wallAfter := m.now()
	by := max(monotonicAfter-monotonic, wallAfter-wall) - normal
	if by < least {
		return
	}
	m.recent = append(slices.DeleteFunc(m.recent, func(l late) bool { return l.end < monotonicAfter-window }), late{monotonicAfter, by})
	stalled := time.Duration(0)
	for _, l := range m.recent {
		stalled += l.by
	}
	m.worst = max(m.worst, stalled)
}
