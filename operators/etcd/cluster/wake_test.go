package cluster

import (
	"testing"
	"time"

	"example.com/fairlead/operators/etcd/step"
)

// TestWaitingCostsLess: the longer the same has been waited for, the more seldom it is looked for.
func TestWaitingCostsLess(t *testing.T) {
	for name, tc := range map[string]struct {
		world *world
		first time.Duration
	}{
		"founders start":        {healthy(anEtcd(), 1, 2, 3).founding().unready(1, 2, 3), step.BusyWake},
		"no quorum":             {healthy(anEtcd(), 1, 2, 3).leaderless(), step.BusyWake},
		"the user is to decide": {healthy(anEtcd(), 1).finds().forgets(), step.WaitingWake},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.world
			wakes := func(what string, want time.Duration) {
				t.Helper()
				p := decide(w.ec, w.seen)
				if got := p.WakeAt.Sub(w.seen.Now); got != want {
					t.Errorf("%s: looks again after %s, want %s", what, got, want)
				}
				w.seen.Waiting = p.waiting
			}
			wakes("at first", tc.first)
			began := w.seen.Now
			w.seen.Now = began.Add(time.Second)
			wakes("after a second", tc.first)
			w.seen.Now = began.Add(80 * time.Second)
			wakes("after 80 s", 10*time.Second)
			w.seen.Now = began.Add(10 * time.Hour)
			wakes("after a night", step.RestingWake)
			w.seen.Waiting.What = "something else"
			wakes("when it is something else", tc.first)
		})
	}
}
