package webserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/metrics"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/testkit/series"
)

// TestCountersBeginWithZero: all that can happen has a series, so that a first failure is an
// increase.
func TestCountersBeginWithZero(t *testing.T) {
	rollouts.Reset()
	rollbacks.Reset()
	if err := registerMetrics(); err != nil {
		t.Fatal(err)
	}
	before := testutil.CollectAndCount(rollbacks)
	for _, reason := range append([]string{"InvalidConfiguration", "ProgressDeadlineExceeded", "PodsRefused", "Unschedulable", "CrashLoopBackOff", "ImagePullBackOff"}, pods.NoStartReasons...) {
		rollbacks.WithLabelValues(reason)
	}
	if n := testutil.CollectAndCount(rollbacks); n != before {
		t.Errorf("%d reasons have no series", n-before)
	}
	if n := testutil.CollectAndCount(rollouts); n != 2 {
		t.Errorf("%d series of rollouts", n)
	}
}

// TestRolloutsAreCounted: each once, when status says that it is over.
func TestRolloutsAreCounted(t *testing.T) {
	a, b := templateFor(image("nginx:a")), templateFor(image("nginx:b"))
	// stored is how a status comes back from the API server, and failedAt is when the rollout of it failed.
	stored := func(options ...webOption) *webv1.WebServer { return aWeb(options...).DeepCopy() }
	failedAt := func(at time.Time) webOption {
		return func(ws *webv1.WebServer) {
			failed(b)(ws)
			ws.Status.FailedRollout.Time = metav1.NewTime(at)
		}
	}
	scaled := func(ws *webv1.WebServer) { ws.Status.ReadyReplicas = 5 }
	for name, tc := range map[string]struct {
		before, after *webv1.WebServer
		result        string // "" if none is counted
	}{
		"nothing is healthy yet":     {stored(), stored(scaled), ""},
		"the first one":              {stored(), stored(good(a, noon)), resultDone},
		"a later one":                {stored(good(a, noon)), stored(good(b, noon)), resultDone},
		"something else changes":     {stored(good(a, noon)), stored(good(a, noon), scaled), ""},
		"it fails":                   {stored(good(a, noon)), stored(good(a, noon), failedAt(noon)), resultRolledBack},
		"it fails after it was good": {stored(good(b, noon)), stored(good(a, noon), failedAt(noon)), resultRolledBack},
		"it stays rolled back":       {stored(good(a, noon), failedAt(noon)), stored(good(a, noon), failedAt(noon.Local()), scaled), ""},
		"it fails again":             {stored(good(a, noon), failedAt(noon)), stored(good(a, noon), failedAt(noon.Add(time.Minute))), resultRolledBack},
		"it is tried again":          {stored(good(a, noon), failedAt(noon)), stored(good(a, noon)), ""},
		"it works then":              {stored(good(a, noon)), stored(good(b, noon)), resultDone},
		"and at once":                {stored(good(a, noon), failedAt(noon)), stored(good(b, noon)), resultDone},
		"nothing is good any more":   {stored(good(a, noon)), stored(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			rollouts.Reset()
			rollbacks.Reset()
			announce(context.Background(), tc.before, tc.after)
			want := map[string]float64{resultDone: 0, resultRolledBack: 0}
			if tc.result != "" {
				want[tc.result] = 1
			}
			for result, times := range want {
				if n := testutil.ToFloat64(rollouts.WithLabelValues(result)); n != times {
					t.Errorf("%s was counted %v times, want %v", result, n, times)
				}
			}
			if n := testutil.ToFloat64(rollbacks.WithLabelValues("ImagePullBackOff")); n != want[resultRolledBack] {
				t.Errorf("%v rollbacks have the reason", n)
			}
		})
	}
}

// TestFiguresAreKept: from the first step to the end of the WebServer.
func TestFiguresAreKept(t *testing.T) {
	all := figures
	t.Cleanup(func() { figures = all })
	figures = metrics.NewBoard(sum, replicasByState)
	ws := aWeb()
	kind.Note(ws, observation{})
	if n := testutil.CollectAndCount(figures); n != 2 {
		t.Errorf("%d series while there is a WebServer", n)
	}
	o := &observer{digests: &contents.Digests{}}
	o.forget(key(ws))
	if n := testutil.CollectAndCount(figures); n != 0 {
		t.Errorf("%d series after it is gone", n)
	}
}

// TestFigures: what all WebServers are together.
func TestFigures(t *testing.T) {
	web := func(desired, ready int32) figure {
		ws := aWeb()
		ws.Status.DesiredReplicas, ws.Status.ReadyReplicas = desired, ready
		return figureOf(ws)
	}
	for name, tc := range map[string]struct {
		all             []figure
		ready, notReady int
	}{
		"all are ready":                {[]figure{web(3, 3), web(0, 0)}, 3, 0},
		"some are not":                 {[]figure{web(3, 1), web(2, 0), web(1, 1)}, 2, 4},
		"more than there should be":    {[]figure{web(3, 4)}, 3, 0},
		"more of one, less of another": {[]figure{web(3, 4), web(2, 1)}, 4, 1},
	} {
		board := metrics.NewBoard(sum, replicasByState)
		for i, f := range tc.all {
			board.Note(types.NamespacedName{Name: fmt.Sprint(i)}, f)
		}
		want := []string{
			fmt.Sprintf(`fairlead_webserver_replicas{state="not_ready"} %d`, tc.notReady), fmt.Sprintf(`fairlead_webserver_replicas{state="ready"} %d`, tc.ready),
		}
		if diff := cmp.Diff(want, series.Of(t, board)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
