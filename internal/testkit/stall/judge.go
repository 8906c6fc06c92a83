package stall

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Judge carries out a step of a test, with a test of its own to fail. If the
// machine stalled during it, its failures are logged and not counted: back takes
// everything to where the step began, unjudged, and the step is done once more.
// If the machine stalled then as well, the test fails as inconclusive.
//
// The step may call FailNow, as in a test, and its cleanups are those of the
// test. A nil back is for a step that can be done again as it is.
func Judge(t testing.TB, name string, step, back func(t testing.TB)) {
	t.Helper()
	judge(t, Measure, name, step, back)
}

func judge(t testing.TB, measure func() func() time.Duration, name string, step, back func(t testing.TB)) {
	t.Helper()
	const tries = 2
	for try := range tries {
		end := measure()
		failures := attempt(t, step)
		stalled := end()
		if stalled < Limit {
			t.Logf("%s: judged; the machine stalled for %.1f s", name, stalled.Seconds())
			if failures != nil {
				t.Fatalf("%s: %s", name, strings.Join(failures, "\n"))
			}
			return
		}
		unjudged := "without a failure"
		if failures != nil {
			unjudged = "with failures that are not judged:\n" + strings.Join(failures, "\n")
		}
		if try+1 == tries {
			t.Fatalf("inconclusive: the machine stalled for %.1f s during step %q done once more, which ended %s", stalled.Seconds(), name, unjudged)
		}
		t.Logf("inconclusive: the machine stalled for %.1f s during step %q; doing it once more; it ended %s", stalled.Seconds(), name, unjudged)
		if back != nil {
			back(t)
		}
	}
}

// attempt runs a step as a test of its own, and returns its failures.
func attempt(t testing.TB, step func(t testing.TB)) []string {
	t.Helper()
	a := &unjudged{TB: t}
	var done sync.WaitGroup
	done.Go(func() { step(a) }) // a goroutine that FailNow can end
	done.Wait()
	return a.failures
}

// unjudged is a test whose failures are kept.
type unjudged struct {
	testing.TB

	mu       sync.Mutex
	failures []string
}

func (u *unjudged) fail(message string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failures = append(u.failures, message)
}

func (u *unjudged) Fail()                             { u.fail("failed") }
func (u *unjudged) Error(args ...any)                 { u.fail(fmt.Sprintln(args...)) }
func (u *unjudged) Errorf(format string, args ...any) { u.fail(fmt.Sprintf(format, args...)) }
func (u *unjudged) FailNow()                          { u.fail("failed"); runtime.Goexit() }
func (u *unjudged) Fatal(args ...any)                 { u.fail(fmt.Sprintln(args...)); runtime.Goexit() }
func (u *unjudged) Fatalf(format string, args ...any) {
	u.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (u *unjudged) Failed() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.failures) > 0
}
