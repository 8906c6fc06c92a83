package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/fairlead/internal/testkit/pace"
)

// TestMain has the pace measured before a test begins: that goes on as long as the process, so no bubble may begin it.
func TestMain(m *testing.M) {
	pace.Slowness()
	os.Exit(m.Run())
}

// memory stands in for an etcd: a map and a mutex.
type memory struct {
	mu       sync.Mutex
	rand     *rand.Rand
	revision int64
	values   map[string]Version
	// failing is how many of 1000 operations have no answer, and down since and until when
	// there is none at all.
	failing     int
	down, until time.Time
	// forget is the revision after which a write is acknowledged and forgotten, and forgotten
	// the revision of that write. From forget on every operation is answered, and the write is to a key
	// of which no operation had no answer: what may have overwritten or deleted it at any time hides the loss.
	forget, forgotten int64
	unanswered        map[string]bool
}

func newMemory(seed uint64) *memory {
	return &memory{rand: rand.New(rand.NewPCG(seed, 1)), values: map[string]Version{}, unanswered: map[string]bool{}}
}

func (m *memory) connect(context.Context, string) (Store, error) { return m, nil }
func (m *memory) Close() error                                   { return nil }

func (m *memory) delay() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Duration(m.rand.IntN(20_000)) * time.Microsecond
}

func (m *memory) Do(ctx context.Context, op *Op) error {
	time.Sleep(m.delay())
	m.mu.Lock()
	isDown := time.Now().After(m.down) && time.Now().Before(m.until)
	fails, refused, late := m.rand.IntN(1000) < m.failing, m.rand.IntN(2) == 0, m.rand.IntN(2) == 0
	fails = fails && !m.forgets()
	if fails {
		m.unanswered[op.Key] = true
	}
	m.mu.Unlock()
	switch {
	case isDown && refused:
		return fmt.Errorf("%w: nobody listens", errRefused)
	case isDown:
		<-ctx.Done()
		return ctx.Err()
	case fails:
		lost := *op
		if late { // it is carried out after the client has given up, or never
			time.AfterFunc(m.delay()*100, func() { m.apply(&lost) })
		}
		return errors.New("the connection is lost")
	}
	m.apply(op)
	time.Sleep(m.delay())
	return nil
}

func (m *memory) apply(op *Op) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.values[op.Key]
	op.Outcome, op.Seen = Done, before
	switch {
	case op.Kind == Read || op.Kind == Delete && before == Version{}:
	case op.Kind == Swap && before.Revision != op.Expect:
		op.Outcome = Differs
	case op.Kind == Delete:
		m.revision++
		delete(m.values, op.Key)
	default:
		m.revision++
		if m.forgets() && !m.unanswered[op.Key] && m.forgotten == 0 {
			m.forgotten = m.revision
		} else {
			m.values[op.Key] = Version{op.Value, m.revision}
		}
	}
	op.Revision = m.revision
}

func (m *memory) forgets() bool { return m.forget > 0 && m.revision >= m.forget }

// run has a load work against a memory for so long, in a bubble of its own time.
func run(t testing.TB, m *memory, config Config, long time.Duration) (h History) {
	t.Helper()
	config.Connect, config.Endpoints = m.connect, func() []string { return []string{"a", "b", "c"} }
	load, err := Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(long)
	h, err = load.Stop(t.Context())
	if err != nil {
		t.Error(err)
	}
	return h
}

func TestMemoryPasses(t *testing.T) {
	cases := map[string]struct {
		failing int
		outage  time.Duration
	}{
		"no failures":                     {},
		"every 20th operation is unknown": {failing: 50},
		"an outage of 10 s":               {failing: 5, outage: 10 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(1)
				m.failing = tc.failing
				m.down = time.Now().Add(12 * time.Second)
				m.until = m.down.Add(tc.outage)
				h := run(t, m, Config{}, 70*time.Second)
				if err := Check(h); err != nil {
					t.Error(err)
				}
				r := NewReport(h)
				t.Logf("%d operations\n%s", len(h.Ops), r)
				if len(h.Ops) < 70*100 || len(h.Ops) > 70*210+1000 {
					t.Errorf("%d operations in 70 s, want some 210 a second", len(h.Ops))
				}
				for _, kind := range []Kind{Read, Write, Swap, Delete} {
					if r.Counts[kind][Done] < 200 {
						t.Errorf("%d operations %q were done, want 200 and more", r.Counts[kind][Done], kind)
					}
				}
				if r.Counts[Swap][Differs] == 0 {
					t.Error("no swap found another revision")
				}
				if unknown := r.Unknown(); (unknown > 0) != (tc.failing > 0) {
					t.Errorf("%d outcomes are unknown", unknown)
				}
				if r.LongestGap < tc.outage || r.LongestGap > tc.outage+500*time.Millisecond {
					t.Errorf("the longest gap is %v, want that of the outage, %v, or little more", r.LongestGap, tc.outage)
				}
				if before := r.Gap(h.Start, m.down); before > time.Second {
					t.Errorf("a gap of %v before the outage", before)
				}
			})
		})
	}
}

// TestMemoryThatForgets: the loss of one write among thousands is seen.
func TestMemoryThatForgets(t *testing.T) {
	for _, forget := range []int64{10, 700, 1500} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(2)
			m.failing, m.forget = 20, forget
			h := run(t, m, Config{}, 40*time.Second)
			if m.forgotten == 0 {
				t.Fatalf("no write was forgotten up to revision %d", m.revision)
			}
			err := Check(h)
			if err == nil {
				t.Fatalf("the loss of revision %d is not found", m.forgotten)
			}
			t.Logf("forgot revision %d:\n%v", m.forgotten, err)
		})
	}
}

func TestSaveAndOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(3)
		m.failing = 50
		want := run(t, m, Config{}, 5*time.Second)
		path := filepath.Join(t.TempDir(), "history.jsonl")
		if err := want.Save(path); err != nil {
			t.Fatal(err)
		}
		got, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		want.Start = want.Start.Round(0) // the file has no monotonic time
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Open(Save()) (-want +got):\n%s", diff)
		}
		page := filepath.Join(t.TempDir(), "history.html")
		if err := Visualize(got, got.Ops[0].Key, page); err != nil {
			t.Error(err)
		}
	})
}

func TestStartWithoutEndpoints(t *testing.T) {
	if _, err := Start(t.Context(), Config{}); err == nil {
		t.Error("a load without endpoints starts")
	}
}

// TestNobodyListens: an operation for which there is no connection is known not to happen, and
// the next one goes to another member.
func TestNobodyListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	load, err := Start(t.Context(), Config{Writers: 1, FinalPatience: time.Millisecond, Timeout: 100 * time.Millisecond, Endpoints: func() []string {
		asked.Add(1)
		return []string{"http://" + address, address}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for asked.Load() < 10 {
		time.Sleep(time.Millisecond)
	}
	h, err := load.Stop(t.Context())
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("Stop() = %v, want that a final read did not succeed", err)
	}
	for _, op := range h.Ops {
		if op.Outcome != Refused {
			t.Errorf("the outcome is %q, want %q: %s", op.Outcome, Refused, &op)
		}
	}
	if r := NewReport(h); r.Unknown() > 0 || r.LongestGap == 0 {
		t.Errorf("%d outcomes are unknown, and the longest gap is %v", r.Unknown(), r.LongestGap)
	}
}

// BenchmarkCheck checks 20 minutes of 200 operations a second, with an unknown outcome now
// and then.
func BenchmarkCheck(b *testing.B) {
	var h History
	// Time in a bubble passes at once; a benchmark has none, so a test within makes the history.
	testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "history", F: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(4)
			m.failing = 10
			h = run(t, m, Config{}, 20*time.Minute)
		})
	}}})
	b.ReportAllocs()
	for b.Loop() {
		if err := Check(h); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(h.Ops)), "operations")
}
