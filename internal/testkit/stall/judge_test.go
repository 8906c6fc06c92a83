package stall

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// recorder is a test that is looked at from outside.
type recorder struct {
	unjudged
	logs []string
}

func (r *recorder) Helper() {}
func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

// TestJudge: only what was done on a machine that ran passes or fails.
func TestJudge(t *testing.T) {
	pass := func(testing.TB) {}
	lose := func(t testing.TB) { t.Errorf("a request was lost") }
	die := func(t testing.TB) { t.Fatal("not within 2m"); t.Error("unreachable") }
	const quiet, stalled = Limit - 1, 3200 * time.Millisecond

	cases := map[string]struct {
		stalls []time.Duration
		steps  []func(testing.TB)
		logs   string
		want   string // empty: it passes
	}{
		"passes": {
			stalls: []time.Duration{quiet}, steps: []func(testing.TB){pass},
		},
		"fails": {
			stalls: []time.Duration{quiet}, steps: []func(testing.TB){lose},
			want: "step: a request was lost",
		},
		"fails at once": {
			stalls: []time.Duration{quiet}, steps: []func(testing.TB){die},
			want: "step: not within 2m\n",
		},
		"a failure under a stall does not count": {
			stalls: []time.Duration{stalled, quiet}, steps: []func(testing.TB){lose, pass},
			logs: `inconclusive: the machine stalled for 3.2 s during step "step"; doing it once more; it ended with failures that are not judged:` + "\na request was lost",
		},
		"nor does one that ends the step": {
			stalls: []time.Duration{stalled, quiet}, steps: []func(testing.TB){die, pass},
			logs: "doing it once more",
		},
		"nor a success": {
			stalls: []time.Duration{stalled, quiet}, steps: []func(testing.TB){pass, lose},
			logs: "doing it once more; it ended without a failure", want: "step: a request was lost",
		},
		"stalled twice is no success": {
			stalls: []time.Duration{stalled, Limit}, steps: []func(testing.TB){pass, pass},
			logs: "doing it once more",
			want: `inconclusive: the machine stalled for 2.0 s during step "step" done once more, which ended without a failure`,
		},
		"stalled twice, with failures": {
			stalls: []time.Duration{stalled, stalled}, steps: []func(testing.TB){pass, lose},
			logs: "doing it once more",
			want: `inconclusive: the machine stalled for 3.2 s during step "step" done once more, which ended with failures that are not judged:` + "\na request was lost",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var r recorder
			measured, done, backs := 0, 0, 0
			measure := func() func() time.Duration {
				return func() time.Duration { measured++; return tc.stalls[measured-1] }
			}
			failures := attempt(t, func(testing.TB) {
				judge(&r, measure, "step", func(t testing.TB) { done++; tc.steps[done-1](t) }, func(testing.TB) { backs++ })
			})
			if failures != nil {
				t.Errorf("the test around it fails: %v", failures)
			}
			if got := strings.Join(r.failures, "|"); got != tc.want {
				t.Errorf("it fails with %q, want %q", got, tc.want)
			}
			if logs := strings.Join(r.logs, "\n"); !strings.Contains(logs, tc.logs) {
				t.Errorf("it logs %q, want %q", logs, tc.logs)
			}
			if done != len(tc.steps) || backs != done-1 {
				t.Errorf("the step was done %d times and %d times undone, want %d and one less", done, backs, len(tc.steps))
			}
		})
	}
}
