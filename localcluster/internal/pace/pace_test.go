package pace

import (
	"strings"
	"testing"
	"time"
)

func TestDeadline(t *testing.T) {
	const limit = 2 * time.Minute
	cases := map[string]struct {
		slow  float64
		looks time.Duration // how often somebody looks
		want  time.Duration
	}{
		"as fast as the reference":   {slow: 1, looks: time.Second, want: limit},
		"twenty times slower":        {slow: 20, looks: time.Second, want: 20 * limit},
		"not running most of a time": {slow: 1, looks: time.Minute, want: 12 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
			now := start
			d := in(limit, func() time.Time { return now }, func() float64 { return tc.slow })
			for !d.Passed() {
				now = now.Add(tc.looks)
			}
			if got := now.Sub(start); got != tc.want {
				t.Errorf("it passed after %s, want %s", got, tc.want)
			}
			if got, want := d.Stretch(time.Second), time.Duration(tc.slow)*time.Second; got != want {
				t.Errorf("Stretch(1s) = %s, want %s", got, want)
			}
			if got := d.String(); !strings.HasPrefix(got, tc.want.String()) || strings.Contains(got, "slow") != (tc.slow > 1) {
				t.Errorf("String() = %q", got)
			}
		})
	}
}

func TestSlownessIsAtLeastOne(t *testing.T) {
	if got := Slowness(); got < 1 {
		t.Errorf("Slowness() = %f", got)
	}
}

// BenchmarkWork is how long the work takes, which is to be the reference.
func BenchmarkWork(b *testing.B) {
	for b.Loop() {
		work()
	}
}
