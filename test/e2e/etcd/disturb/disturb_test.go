package disturb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fake is a cluster whose members come back some seconds after they went.
type fake struct {
	t          *testing.T
	mu         sync.Mutex
	persistent bool
	size       int
	version    string
	rotations  int
	operators  int
	// back is when members that are down are back, and whole when all else is.
	back  map[string]time.Time
	whole time.Time
	// stuck says that nothing comes back from the kill of a pod.
	stuck bool
}

func newFake(t *testing.T, facts Facts) *fake {
	return &fake{t: t, persistent: facts.Persistent, size: facts.Size, back: map[string]time.Time{}}
}

func (f *fake) down() (names []string) {
	for name, back := range f.back {
		if time.Now().Before(back) {
			names = append(names, name)
		}
	}
	return names
}

func (f *fake) Members(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for i := range f.size {
		names = append(names, fmt.Sprintf("example-%d", i))
	}
	slices.Reverse(names) // no order is promised
	return names, nil
}

func (f *fake) Healthy(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if down := f.down(); len(down) > 0 {
		return fmt.Errorf("members are down: %v", down)
	}
	if time.Now().Before(f.whole) {
		return errors.New("the operator is busy")
	}
	return nil
}

func (f *fake) kill(member string, losesData bool, takes time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.back[member] = time.Now().Add(takes)
	if down := len(f.down()); (losesData || !f.persistent) && down > (f.size-1)/2 {
		f.t.Errorf("%d of %d members are down, and data is lost", down, f.size)
	}
	return nil
}

func (f *fake) DeletePod(_ context.Context, member string) error {
	if f.stuck {
		return f.kill(member, false, 24*time.Hour)
	}
	return f.kill(member, false, 8*time.Second)
}

func (f *fake) KillProcess(_ context.Context, member string) error {
	return f.kill(member, false, 4*time.Second)
}

func (f *fake) DeleteVolume(_ context.Context, member string) error {
	return f.kill(member, true, 15*time.Second)
}

func (f *fake) busy(change func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if down := f.down(); len(down) > 0 {
		f.t.Errorf("the spec changes while members are down: %v", down)
	}
	change()
	f.whole = time.Now().Add(10 * time.Second)
	return nil
}

func (f *fake) KillOperator(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.operators++
	f.whole = time.Now().Add(6 * time.Second)
	return nil
}

func (f *fake) Scale(_ context.Context, size int) error { return f.busy(func() { f.size = size }) }

func (f *fake) Upgrade(_ context.Context, version string) error {
	return f.busy(func() { f.version = version })
}

func (f *fake) RotateCertificates(context.Context) error { return f.busy(func() { f.rotations++ }) }

var all = Facts{Size: 3, Persistent: true, Versions: []string{"3.6.16", "3.7.3"}, Certificates: true}

func TestRun(t *testing.T) {
	mixes := map[string]struct {
		mix                func(uint64, Facts) Mix
		atLeast, atMost    time.Duration
		members, operators int
	}{
		"short": {Short, 80 * time.Second, 2 * time.Minute, 3, 2},
		"soak":  {Soak, 20 * time.Minute, 21 * time.Minute, 30, 10},
	}
	facts := map[string]Facts{
		"all":              all,
		"without volumes":  {Size: 3},
		"five members":     {Size: 5, Versions: []string{"3.6.16"}},
		"a single member":  {Size: 1, Persistent: true},
		"all of seven":     {Size: 7, Persistent: true, Certificates: true},
		"even, no volumes": {Size: 4},
	}
	for mixName, m := range mixes {
		for name, facts := range facts {
			t.Run(mixName+"/"+name, func(t *testing.T) {
				for seed := range uint64(20) {
					synctest.Test(t, func(t *testing.T) {
						f := newFake(t, facts)
						mix := m.mix(seed, facts)
						begin := time.Now()
						diary, err := Run(t.Context(), f, mix, Config{})
						if err != nil {
							t.Fatalf("seed %d: %v\n%s", seed, err, diary)
						}
						if took := time.Since(begin); took < m.atLeast || took > m.atMost {
							t.Errorf("seed %d: it took %v, want %v to %v\n%s", seed, took, m.atLeast, m.atMost, diary)
						}
						members, operators := mix.Kills()
						if members < m.members || operators < m.operators || operators != f.operators {
							t.Errorf("seed %d: %d members and %d operators were killed (%d as the cluster saw it), want %d and %d and more", seed, members, operators, f.operators, m.members, m.operators)
						}
						if f.size != facts.Size {
							t.Errorf("seed %d: the cluster has %d members in the end, want %d as in the beginning", seed, f.size, facts.Size)
						}
						if n := len(facts.Versions); n > 0 && f.version != facts.Versions[n-1] {
							t.Errorf("seed %d: the version is %q in the end, want %q", seed, f.version, facts.Versions[n-1])
						}
						if facts.Certificates != (f.rotations > 0) {
							t.Errorf("seed %d: certificates were rotated %d times", seed, f.rotations)
						}
						if len(diary.Entries()) != len(mix.Steps) {
							t.Errorf("seed %d: the diary has %d entries for %d steps", seed, len(diary.Entries()), len(mix.Steps))
						}
					})
				}
			})
		}
	}
}

func TestSeed(t *testing.T) {
	if diff := cmp.Diff(Soak(7, all), Soak(7, all)); diff != "" {
		t.Errorf("the same seed gives two mixes:\n%s", diff)
	}
	if cmp.Equal(Soak(7, all), Soak(8, all)) {
		t.Error("two seeds give the same mix")
	}
}

func TestRunOfASingleMemberWithoutVolume(t *testing.T) {
	if members, operators := Soak(1, Facts{Size: 1}).Kills(); members != 0 || operators < 10 {
		t.Errorf("%d members are killed, which loses all data, and %d operators", members, operators)
	}
}

// TestRunStops: a cluster that does not become whole ends the run, and the diary says where.
func TestRunStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, all)
		f.stuck = true
		var lines []string
		diary, err := Run(t.Context(), f, Short(1, all), Config{Log: func(line string) { lines = append(lines, line) }})
		for _, want := range []string{"step 2 of", "delete pod of 1 members", "not whole after 3m0s: members are down: [example-"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Run() = %v, want %q in it", err, want)
			}
		}
		if got := strings.Join(lines, "\n"); got != diary.String() || len(lines) != 2 || !strings.Contains(lines[0], "whole again after") {
			t.Errorf("the diary is\n%s\nand was logged as\n%s", diary, got)
		}
	})
}

// TestRunTakesTooMany: a mix for another cluster does not break the promise.
func TestRunTakesTooMany(t *testing.T) {
	f := newFake(t, Facts{Size: 3})
	_, err := Run(t.Context(), f, Mix{Steps: []Step{{Action: DeletePod, Members: 2}}}, Config{})
	if err == nil || !strings.Contains(err.Error(), "at most 1") {
		t.Errorf("Run() = %v, want that 2 of 3 members are too many", err)
	}
}
