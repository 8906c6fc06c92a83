package memcached

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
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
