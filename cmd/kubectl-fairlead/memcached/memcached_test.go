package memcached

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	operator "example.com/fairlead/operators/memcached"
)

// TestRing counts, key by key, what other numbers of servers move.
func TestRing(t *testing.T) {
	for _, tc := range [][2]int64{{3, 4}, {4, 3}, {3, 6}, {5, 5}, {1, 2}, {4, 6}} {
		const keys = 60_000 // a multiple of all of them
		moved := 0
		for key := range int64(keys) {
			if key%tc[0] != key%tc[1] {
				moved++
			}
		}
		if got, want := modulusMoves(tc[0], tc[1]), float64(moved)/keys; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("from %d to %d servers %v of the keys move, want %v", tc[0], tc[1], got, want)
		}
	}
	if got := percent(ringMoves(3, 4)); got != "25%" {
		t.Errorf("consistent hashing moves %s of the keys from 3 to 4 servers, want a quarter", got)
	}
}

func TestSpread(t *testing.T) {
	for _, tc := range []struct {
		n    int
		over time.Duration
		want []time.Duration
	}{
		{1, time.Minute, []time.Duration{0}},
		{2, time.Minute, []time.Duration{0, time.Minute}},
		{4, 10 * time.Second, []time.Duration{0, 3 * time.Second, 6 * time.Second, 10 * time.Second}},
	} {
		if got := spread(tc.n, tc.over); !slices.Equal(got, tc.want) {
			t.Errorf("%d servers over %s: %v, want %v", tc.n, tc.over, got, tc.want)
		}
	}
}

// TestDryFlush: what would be done is said, and nobody is asked.
func TestDryFlush(t *testing.T) {
	var said, out strings.Builder
	o := &flush{CLI: &cli.CLI{Now: time.Now}}
	o.In, o.Out, o.ErrOut = strings.NewReader(""), &out, &said
	cmd := &cobra.Command{}
	o.dry.AddTo(cmd)
	pool := []server{{name: "pool-0", items: 7}, {name: "pool-1", items: 3}}
	for dry, isAsked := range map[string]bool{"none": true, "client": false, "server": false} {
		said.Reset()
		if err := cmd.Flags().Set("dry-run", dry); err != nil {
			t.Fatal(err)
		}
		err := o.flush("pool", pool, []float64{1, 2}, []time.Duration{0, 0}) // of a pool without connections
		if isAsked != (err != nil) || !isAsked && !strings.Contains(said.String(), "Empties memcached/pool: 10 items are lost.") {
			t.Errorf("--dry-run=%s: %v, %s", dry, err, &said)
		}
	}
	if got := out.String(); !strings.Contains(got, "/pool flushed (dry run), the last server at") || !strings.Contains(got, "/pool flushed (server dry run)") {
		t.Errorf("printed: %s", got)
	}
}

func TestServersThatGo(t *testing.T) {
	pool := make([]server, 11)
	for i := range pool {
		pool[i].name = fmt.Sprintf("pool-%d", i)
	}
	slices.SortFunc(pool, func(a, b server) int { return strings.Compare(a.name, b.name) }) // pool-10 before pool-2
	of := func(size int32, identity cachev1alpha1.Identity) *cachev1alpha1.Memcached {
		return &cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{Size: &size, Identity: identity}}
	}
	for name, tc := range map[string]struct {
		size     int32
		identity cachev1alpha1.Identity
		going    int
		which    []string
	}{
		"the last of a stable pool": {9, cachev1alpha1.StableIdentity, 2, []string{"pool-9", "pool-10"}},
		"nobody knows":              {9, cachev1alpha1.RandomIdentity, 2, nil},
		"none":                      {11, cachev1alpha1.StableIdentity, 0, nil},
		"more":                      {12, cachev1alpha1.RandomIdentity, 0, nil},
	} {
		going, which := leaving(of(11, tc.identity), of(tc.size, tc.identity), pool)
		if going != tc.going || !slices.Equal(which, tc.which) {
			t.Errorf("%s: %d go, %v; want %d, %v", name, going, which, tc.going, tc.which)
		}
	}
}

// TestPlanOfEach: what a change does may differ from server to server.
func TestPlanOfEach(t *testing.T) {
	pool := []server{{name: "pool-0", items: 1}, {name: "pool-1", items: 10}, {name: "pool-2", items: 100}, {name: "pool-3", items: 1000}, {name: "pool-4", items: 10000}}
	mc := &cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{Size: new(int32(5)), Identity: cachev1alpha1.StableIdentity}}
	cold := &cachev1alpha1.UpgradeStatus{Kind: cachev1alpha1.Cold, Message: "why"}
	for name, tc := range map[string]struct {
		would operator.Preview
		want  string
	}{
		"in place": {
			operator.Preview{Upgrade: cold, Changed: []string{"pool-0", "pool-1", "pool-2", "pool-3"}, Restarted: []string{"pool-0", "pool-1"}, Kept: []string{"pool-1", "pool-2", "pool-3"}},
			"change     Cold: why\n  pool-0   restarts in its pod, and starts empty; 1 items\n  pool-1   restarts in its pod, and keeps its items; 10 items\n" +
				"  pool-2   is changed while it runs; 100 items\n  pool-3   is changed while it runs; 1000 items\n  pool-4   stays as it is; 10000 items\nat stake   1 of 11111 items\n",
		},
		"replaced": {
			operator.Preview{Upgrade: cold, Changed: []string{"pool-3", "pool-4"}},
			"change     Cold: why\n  pool-0   stays as it is; 1 items\n  pool-1   stays as it is; 10 items\n  pool-2   stays as it is; 100 items\n" +
				"  pool-3   is replaced, and starts empty; 1000 items\n  pool-4   is replaced, and starts empty; 10000 items\nat stake   11000 of 11111 items\n",
		},
		"it would not be made": {operator.Preview{Upgrade: cold, Problem: "what is wrong"}, "change  none: what is wrong\n"},
	} {
		var out strings.Builder
		o := &change{CLI: &cli.CLI{}}
		o.Out = &out
		if err := o.printPlan(mc, mc, tc.would, pool); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
