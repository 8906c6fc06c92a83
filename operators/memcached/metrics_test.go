package memcached

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/metrics"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit/series"
	"example.com/fairlead/operators/memcached/change"
	"example.com/fairlead/operators/memcached/pool"
)

// TestCountersBeginWithZero: also the one without labels, and so that a first failure is an
// increase.
func TestCountersBeginWithZero(t *testing.T) {
	changes.Reset()
	change.ServersChanged.Reset()
	if err := registerMetrics(); err != nil {
		t.Fatal(err)
	}
	if n := testutil.CollectAndCount(changes); n != 8 {
		t.Errorf("%d series of changes, want 3 kinds with 3 results, less one", n)
	}
	if n := testutil.CollectAndCount(change.ServersChanged); n != 1 {
		t.Errorf("%d series of changes of servers", n)
	}
}

// TestChangesAreCounted: each once, when status says that it is over.
func TestChangesAreCounted(t *testing.T) {
	change := func(revision string, kind v1alpha1.UpgradeKind, updated int32) *v1alpha1.UpgradeStatus {
		return &v1alpha1.UpgradeStatus{Revision: revision, Kind: kind, Updated: updated}
	}
	at := func(generation int64, upgrade *v1alpha1.UpgradeStatus, options ...mcOption) *v1alpha1.Memcached {
		mc := aPool(options...)
		mc.Status.ObservedGeneration, mc.Status.Upgrade = generation, upgrade
		return mc
	}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.Memcached
		kind, result  string // "" if none is counted
	}{
		"nothing changes":              {before: at(1, nil), after: at(1, nil)},
		"a change begins":              {before: at(1, nil), after: at(2, change("b", v1alpha1.Warm, 0))},
		"it goes on":                   {before: at(2, change("b", v1alpha1.Warm, 0)), after: at(2, change("b", v1alpha1.Warm, 1))},
		"it is over":                   {before: at(2, change("b", v1alpha1.Warm, 3)), after: at(2, nil), kind: "warm", result: "done"},
		"a cold one is over":           {before: at(2, change("b", v1alpha1.Cold, 3)), after: at(2, nil), kind: "cold", result: "done"},
		"memcached was not restarted":  {before: at(2, change("b", v1alpha1.Untouched, 3)), after: at(2, nil), kind: "untouched", result: "done"},
		"of one server, seen late":     {before: at(2, change("b", v1alpha1.Warm, 0), size(1)), after: at(2, nil, size(1)), kind: "warm", result: "done"},
		"it is over as size changes":   {before: at(2, change("b", v1alpha1.Warm, 3)), after: at(3, nil, size(4)), kind: "warm", result: "done"},
		"another one is requested":     {before: at(2, change("b", v1alpha1.Warm, 1)), after: at(3, change("c", v1alpha1.Warm, 0)), kind: "warm", result: "superseded"},
		"taken back before it began":   {before: at(2, change("b", v1alpha1.Cold, 0)), after: at(3, nil), kind: "cold", result: "superseded"},
		"taken back after it began":    {before: at(2, change("b", v1alpha1.Cold, 1)), after: at(3, change("a", v1alpha1.Cold, 2)), kind: "cold", result: "superseded"},
		"all servers are stopped":      {before: at(3, change("b", v1alpha1.Cold, 2), size(0)), after: at(3, nil, size(0)), kind: "cold", result: "superseded"},
		"a server came back empty":     {before: at(2, change("b", v1alpha1.Warm, 1)), after: at(2, change("b", v1alpha1.Cold, 1)), kind: "warm", result: "turned_cold"},
		"no room to grow":              {before: at(2, change("b", v1alpha1.Untouched, 0)), after: at(2, change("b", v1alpha1.Cold, 0)), kind: "untouched", result: "turned_cold"},
		"the rest of it is a cold one": {before: at(2, change("b", v1alpha1.Cold, 3)), after: at(2, nil), kind: "cold", result: "done"},
	} {
		t.Run(name, func(t *testing.T) {
			changes.Reset()
			announce(context.Background(), tc.before, tc.after)
			want := 0
			if tc.result != "" {
				want = 1
				if n := testutil.ToFloat64(changes.WithLabelValues(tc.kind, tc.result)); n != 1 {
					t.Errorf("%s, %s was counted %v times", tc.kind, tc.result, n)
				}
			}
			if n := testutil.CollectAndCount(changes); n != want {
				t.Errorf("%d kinds of ends were counted, want %d", n, want)
			}
		})
	}
}

// TestFiguresAreKept: from the first step to the end of the Memcached.
func TestFiguresAreKept(t *testing.T) {
	all := figures
	t.Cleanup(func() { figures = all })
	figures = metrics.NewBoard(sum, serversByState, atStake)
	mc := aPool()
	kind.Note(mc, pool.Observation{})
	if n := testutil.CollectAndCount(figures); n != 3 {
		t.Errorf("%d series while there is a Memcached", n)
	}
	o := &observer{digests: &contents.Digests{}, limits: &limits{}, missing: &firstSeen{}}
	o.forget(key(mc))
	if n := testutil.CollectAndCount(figures); n != 0 {
		t.Errorf("%d series after it is gone", n)
	}
}

// TestFigures: what all Memcacheds are together.
func TestFigures(t *testing.T) {
	pool := func(replicas, ready int32, options ...mcOption) *v1alpha1.Memcached {
		mc := aPool(options...)
		mc.Status.Replicas, mc.Status.ReadyReplicas = replicas, ready
		return mc
	}
	changing := func(kind v1alpha1.UpgradeKind, updated int32, since time.Duration) mcOption {
		return func(mc *v1alpha1.Memcached) {
			mc.Status.Upgrade = &v1alpha1.UpgradeStatus{Kind: kind, Updated: updated}
			mc.Status.Conditions = []metav1.Condition{{Type: status.Ready, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon.Add(-since))}}
		}
	}
	since := func(name string, since time.Duration) string {
		return fmt.Sprintf(`fairlead_memcached_change_started_timestamp_seconds{name=%q,namespace="shop"} %s`, name,
			strconv.FormatFloat(float64(noon.Add(-since).Unix()), 'g', -1, 64))
	}
	servers := func(stake, notReady, ready int) []string {
		return []string{
			fmt.Sprintf(`fairlead_memcached_servers{state="not_ready"} %d`, notReady), fmt.Sprintf(`fairlead_memcached_servers{state="ready"} %d`, ready),
			fmt.Sprintf(`fairlead_memcached_servers_at_stake %d`, stake),
		}
	}
	for name, tc := range map[string]struct {
		pools map[string]*v1alpha1.Memcached
		want  []string
	}{
		"all are ready":              {map[string]*v1alpha1.Memcached{"a": pool(3, 3), "b": pool(0, 0, size(0))}, servers(0, 0, 3)},
		"missing ones are not ready": {map[string]*v1alpha1.Memcached{"a": pool(2, 1)}, servers(0, 2, 1)},
		"one more starts":            {map[string]*v1alpha1.Memcached{"a": pool(4, 3)}, servers(0, 1, 3)},
		"cold changes":               {map[string]*v1alpha1.Memcached{"a": pool(3, 3, changing(v1alpha1.Cold, 0, 0)), "b": pool(4, 3, changing(v1alpha1.Cold, 2, time.Hour))}, servers(5, 1, 6)},
		"another operator's servers": {map[string]*v1alpha1.Memcached{"a": pool(0, 0, changing(v1alpha1.Cold, 0, 0))}, servers(0, 3, 0)},
		"more updated than there":    {map[string]*v1alpha1.Memcached{"a": pool(3, 3, changing(v1alpha1.Cold, 4, 0))}, servers(0, 0, 3)},
		"memcached is not restarted": {map[string]*v1alpha1.Memcached{"a": pool(3, 3, changing(v1alpha1.Untouched, 0, time.Hour))}, servers(0, 0, 3)},
		"warm changes": {map[string]*v1alpha1.Memcached{
			"a": pool(3, 3, changing(v1alpha1.Warm, 1, time.Minute)), "b": pool(3, 2, changing(v1alpha1.Warm, 1, time.Hour)), "c": pool(3, 3),
		}, append([]string{since("b", time.Hour)}, servers(0, 1, 8)...)},
	} {
		board := metrics.NewBoard(sum, serversByState, atStake, longestChange)
		for name, mc := range tc.pools {
			board.Note(types.NamespacedName{Namespace: "shop", Name: name}, figureOf(mc, somethingSeen()))
		}
		if diff := cmp.Diff(tc.want, series.Of(t, board)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
