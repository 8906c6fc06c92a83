package pace

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAdd(t *testing.T) {
	start := time.Now()
	m := &meter{slow: 1, seen: start}
	for _, step := range []struct {
		name  string
		after time.Duration
		slow  float64
		want  time.Duration
	}{
		{"as fast as the reference", every, 4, every},
		{"four times slower", every, 1, every / 4},
		{"no processor for a minute: one measurement", time.Minute, 1, every},
	} {
		before := m.time
		m.add(1, m.seen.Add(step.after))
		m.slow = step.slow
		if got := m.time - before; got != step.want {
			t.Errorf("%s: %v passed, want %v", step.name, got, step.want)
		}
	}
}

func TestSlownessForgets(t *testing.T) {
	m := &meter{slow: 1, seen: time.Now()}
	for range 20 {
		m.add(10, m.seen.Add(every))
	}
	if m.slow < 9 || m.slow > 10 {
		t.Errorf("after 10 s of tenfold slowness it is %v", m.slow)
	}
	m.add(1, m.seen.Add(every))
	if m.slow < 7 {
		t.Errorf("one moment ended it: %v", m.slow)
	}
}

func TestDeadline(t *testing.T) {
	if In(time.Hour).Passed() {
		t.Error("an hour has passed at once")
	}
	began, deadline := time.Now(), In(300*time.Millisecond)
	for !deadline.Passed() {
		time.Sleep(time.Millisecond)
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("machine time is faster than the clock: %v", took)
	}
}

func TestWithTimeout(t *testing.T) {
	cause := errors.New("too late")
	ctx, cancel := WithTimeout(t.Context(), 50*time.Millisecond, cause)
	defer cancel()
	<-ctx.Done()
	if got := context.Cause(ctx); !errors.Is(got, cause) {
		t.Errorf("the cause is %v", got)
	}

	ctx, cancel = WithTimeout(t.Context(), time.Hour, cause)
	cancel()
	<-ctx.Done()
	if got := context.Cause(ctx); errors.Is(got, cause) {
		t.Errorf("the cause is %v", got)
	}
}

// TestEventuallyLeavesTime: what a check costs is a third of the time at most.
func TestEventuallyLeavesTime(t *testing.T) {
	const cost = 40 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 10*cost)
	defer cancel()
	calls, began := 0, time.Now()
	_, err := poll(ctx, time.Hour, 2, func() error {
		calls++
		time.Sleep(cost)
		return errors.New("not yet")
	})
	if most := int(time.Since(began)/(3*cost)) + 1; err == nil || calls > most {
		t.Errorf("%d calls, want at most %d (%v)", calls, most, err)
	}
}

// BenchmarkWork is how long the reference work takes, which is to be five
// milliseconds on the reference.
func BenchmarkWork(b *testing.B) {
	for b.Loop() {
		Work()
	}
}
