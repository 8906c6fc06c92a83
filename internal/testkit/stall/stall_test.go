package stall

import (
	"testing"
	"time"
)

// fakeClock is a machine whose rounds take what they are told to.
type fakeClock struct{ monotonic, wall time.Duration }

func (c *fakeClock) pass(d time.Duration) { c.monotonic, c.wall = c.monotonic+d, c.wall+d }

func TestMeter(t *testing.T) {
	cases := map[string]struct {
		pause, work func(c *fakeClock, round int)
		want        time.Duration
	}{
		"quiet": {},
		"slower than the reference, and busy": {
			work: func(c *fakeClock, _ int) { c.pass(190 * time.Millisecond) },
		},
		"faster than the reference": {
			work: func(c *fakeClock, _ int) { c.pass(-4 * time.Millisecond) },
		},
		"suspended once for three seconds": {
			pause: func(c *fakeClock, round int) {
				if round == 5 {
					c.pass(3 * time.Second)
				}
			},
			want: 3 * time.Second,
		},
		"the monotonic clock stands still meanwhile": {
			pause: func(c *fakeClock, round int) {
				if round == 5 {
					c.wall += 3 * time.Second
				}
			},
			want: 3 * time.Second,
		},
		"the wall clock is set back": {
			pause: func(c *fakeClock, round int) {
				if round == 5 {
					c.wall -= time.Hour
				}
			},
		},
		"dozens want the processor: woken at once, but interrupted at work": {
			work: func(c *fakeClock, round int) {
				if round < 4 {
					c.pass(300 * time.Millisecond)
				}
			},
			want: 1200 * time.Millisecond,
		},
		"one second now and one soon": {
			pause: func(c *fakeClock, round int) {
				if round == 5 || round == 500 {
					c.pass(time.Second)
				}
			},
			want: 2 * time.Second,
		},
		"one second every other minute": {
			pause: func(c *fakeClock, round int) {
				if round%1200 == 0 {
					c.pass(time.Second)
				}
			},
			want: time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var clock fakeClock
			round := 0
			m := meter{
				now: func() (monotonic, wall time.Duration) { return clock.monotonic, clock.wall },
				pause: func() {
					clock.pass(pause)
					if tc.pause != nil {
						tc.pause(&clock, round)
					}
				},
				work: func() {
					clock.pass(normal - pause)
					if tc.work != nil {
						tc.work(&clock, round)
					}
				},
			}
			for ; round < 5000; round++ {
				m.round()
			}
			if m.worst != tc.want {
				t.Errorf("the machine stalled for %v, want %v", m.worst, tc.want)
			}
		})
	}
}

// TestMeasure: the thread ends, and a moment has no stall of more than it lasts.
func TestMeasure(t *testing.T) {
	began := time.Now()
	end := Measure()
	time.Sleep(300 * time.Millisecond)
	stalled := end()
	if took := time.Since(began); stalled > took {
		t.Errorf("the machine stalled for %v in %v", stalled, took)
	}
}
