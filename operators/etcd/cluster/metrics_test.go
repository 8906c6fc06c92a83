package cluster

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/metrics"
	"example.com/fairlead/operators/etcd/certificates"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
)

// observed is the EtcdCluster of a world after a step.
func (w *world) observed(t *testing.T) *v1beta2.EtcdCluster {
	t.Helper()
	p := decide(w.ec, w.seen)
	after := w.ec.DeepCopy()
	after.Status = summarize(w.ec, w.seen, p, nil)
	return after
}

// filled has a member's database be of that size, with a quota.
func (w *world) filled(n, size, quota int64) *world {
	w.answer(n, func(a *session.Answer) { a.Status.DBSize, a.Status.Quota = size, quota })
	return w
}

// ledBy has members say that a member leads in a term.
func (w *world) ledBy(leader members.ID, term uint64, numbers ...int64) *world {
	for _, n := range numbers {
		w.answer(n, func(a *session.Answer) { a.Status.Leader, a.Status.RaftTerm = leader, term })
	}
	return w
}

func (w *world) expires(at time.Time) *world {
	w.seen.Certs.Expires = at
	return w
}

// unasked is a world whose members cannot be asked, for want of certificates.
func (w *world) unasked() *world {
	w.seen.Answers, w.seen.Certs = nil, objects.Certificates{}
	return w
}

// said are the series of figures, without the beginning of their names.
func said(all map[types.NamespacedName]figure) map[string]float64 {
	got := map[string]float64{}
	sum(all, func(f *metrics.Family, value float64, labels ...string) {
		got[strings.Join(append([]string{strings.TrimPrefix(f.Name, "fairlead_etcd_")}, labels...), " ")] = value
	})
	return got
}

// TestFigures: what the metrics say after an EtcdCluster was looked at some times, the last of
// which counts as far as it was known then.
func TestFigures(t *testing.T) {
	three := func(options ...ecOption) *world { return healthy(anEtcd(options...), 1, 2, 3) }
	learner := func(w *world) *world {
		w.list[2].IsLearner = true
		return w
	}
	const sharing = "members_sharing_node ns example"
	const ready, notReady, ratio, leaderless, expiry = "members ready", "members not_ready", "database_quota_ratio ns example", "clusters_without_leader", "certificate_expiry_timestamp_seconds ns example"
	for name, tc := range map[string]struct {
		seen []*world
		want map[string]float64
		none string // a series that there is not
	}{
		"all serve":          {seen: []*world{three()}, want: map[string]float64{ready: 3, notReady: 0, "members learner": 0, leaderless: 0}, none: expiry},
		"one does not":       {seen: []*world{three().silences(2)}, want: map[string]float64{ready: 2, notReady: 1}},
		"all share a node":   {seen: []*world{three()}, want: map[string]float64{sharing: 3}},
		"two share a node":   {seen: []*world{three().shares(1, 2)}, want: map[string]float64{sharing: 2}},
		"none shares a node": {seen: []*world{three().shares(1, 2), three().cordons()}, want: map[string]float64{sharing: 0}},
		"a learner":          {seen: []*world{learner(three())}, want: map[string]float64{ready: 2, "members learner": 1, notReady: 0}},
		"not formed":         {seen: []*world{healthy(anEtcd(notFormed))}, want: map[string]float64{ready: 0, leaderless: 0}, none: ratio},
		"no leader":          {seen: []*world{three(), three().leaderless()}, want: map[string]float64{leaderless: 1}},
		"nobody answers":     {seen: []*world{three(), three().silences(1, 2, 3)}, want: map[string]float64{leaderless: 1, ready: 0}},
		"a leader again":     {seen: []*world{three().leaderless(), three()}, want: map[string]float64{leaderless: 0}},
		"users are on":       {seen: []*world{three().refuses(1, 2, 3)}, want: map[string]float64{leaderless: 0}},
		"cannot be asked":    {seen: []*world{three(withTLS).filled(1, 1, 4).expires(noon), three(withTLS).unasked()}, want: map[string]float64{leaderless: 0, ratio: .25, expiry: float64(noon.Unix())}},
		"the fullest member": {seen: []*world{three().filled(1, 10, 100).filled(2, 30, 100).filled(3, 20, 100)}, want: map[string]float64{ratio: .3}},
		"etcd's own quota":   {seen: []*world{three().filled(2, 1<<30, 0)}, want: map[string]float64{ratio: .5}},
		"a variable's quota": {seen: []*world{three(withQuota("4096")).filled(2, 1024, 0).filled(1, 1, 0).filled(3, 1, 0)}, want: map[string]float64{ratio: .25}},
		"no quota":           {seen: []*world{three().filled(1, 1<<40, -1).filled(2, 1<<40, -1).filled(3, 1<<40, -1)}, none: ratio},
		"the fullest hangs":  {seen: []*world{three().filled(2, 9, 10), three().hangs(2)}, want: map[string]float64{ratio: .9}},
		"it was defragmented": {seen: []*world{three().filled(2, 9, 10), three().filled(2, 1, 10)},
			want: map[string]float64{ratio: .1}},
		"it was removed": {seen: []*world{three().filled(3, 9, 10), healthy(anEtcd(size(2)), 1, 2).filled(1, 1, 2)}, want: map[string]float64{ratio: .5, ready: 2}},
		"certificates":   {seen: []*world{three(withTLS).expires(noon)}, want: map[string]float64{expiry: float64(noon.Unix())}},
		"renewed":        {seen: []*world{three(withTLS).expires(noon), three(withTLS).expires(noon.Add(time.Hour))}, want: map[string]float64{expiry: float64(noon.Unix() + 3600)}},
		"no TLS":         {seen: []*world{three(withTLS).expires(noon), three()}, none: expiry},
	} {
		t.Run(name, func(t *testing.T) {
			f := figure{}
			for _, w := range tc.seen {
				f = f.next(w.observed(t), w.seen)
			}
			got := said(map[types.NamespacedName]figure{objects.Key(tc.seen[0].ec): f})
			for series, want := range tc.want {
				if is, ok := got[series]; !ok || is != want {
					t.Errorf("%s is %v, want %v", series, is, want)
				}
			}
			if is, ok := got[tc.none]; ok {
				t.Errorf("there is %s, of %v", tc.none, is)
			}
		})
	}
}

// TestFiguresOfTheWorst: one series, of the cluster that is worst off.
func TestFiguresOfTheWorst(t *testing.T) {
	object := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: "ns", Name: name}
	}
	got := said(map[types.NamespacedName]figure{
		object("well"):  {members: map[string]int{stateReady: 3}, filled: map[string]float64{"a": .1}, expires: noon.Add(2 * time.Hour)},
		object("full"):  {members: map[string]int{stateReady: 2, stateNotReady: 1}, filled: map[string]float64{"a": .2, "b": .95}, expires: noon.Add(time.Hour)},
		object("old"):   {members: map[string]int{stateLearner: 1}, filled: map[string]float64{"a": .9}, expires: noon},
		object("plain"): {isLeaderless: true, sharing: 2},
	})
	want := map[string]float64{
		"members ready": 5, "members not_ready": 1, "members learner": 1, "clusters_without_leader": 1,
		"members_sharing_node ns plain": 2, "database_quota_ratio ns full": .95, "certificate_expiry_timestamp_seconds ns old": float64(noon.Unix()),
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// TestLeaderChanges: the first leader that is seen is none, whether the cluster or the operator
// is new; nor is one of which nobody says anything, or only a member that is cut off.
func TestLeaderChanges(t *testing.T) {
	three := func() *world { return healthy(anEtcd(), 1, 2, 3) }
	another := func() *world { // restored from a backup
		w := three().ledBy(2, 9, 1, 2, 3)
		w.ec.Status.ClusterID = "c2"
		for name, a := range w.seen.Answers {
			a.Status.ClusterID, a.List.ClusterID = 0xc2, 0xc2
			w.seen.Answers[name] = a
		}
		return w
	}
	for name, tc := range map[string]struct {
		seen []*world
		want float64
	}{
		"the first":            {[]*world{three()}, 0},
		"the first after none": {[]*world{three().leaderless(), three()}, 0},
		"the same":             {[]*world{three(), three()}, 0},
		"elected again":        {[]*world{three(), three().ledBy(1, 3, 1, 2, 3)}, 0},
		"another":              {[]*world{three(), three().ledBy(2, 3, 1, 2, 3)}, 1},
		"and back":             {[]*world{three(), three().ledBy(2, 3, 1, 2, 3), three().ledBy(1, 4, 1, 2, 3)}, 2},
		"after none":           {[]*world{three(), three().leaderless(), three().ledBy(2, 3, 1, 2, 3)}, 1},
		"the same after none":  {[]*world{three(), three().leaderless(), three()}, 0},
		"not all have heard":   {[]*world{three(), three().elects(2), three().ledBy(2, 3, 1, 2, 3)}, 1},
		"the old one, cut off": {[]*world{three(), three().ledBy(2, 3, 1, 2, 3), three().silences(2, 3), three().ledBy(2, 3, 1, 2, 3)}, 1},
		"cannot be asked":      {[]*world{three(), three().unasked(), three()}, 0},
		"of another cluster":   {[]*world{three(), another()}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := &observer{asker: session.New(nil, time.Now), certificates: certificates.New("", nil)}
			counter := leaderChanges.WithLabelValues()
			before := testutil.ToFloat64(counter)
			for _, w := range tc.seen {
				noteFigure(w.observed(t), w.seen)
			}
			if got := testutil.ToFloat64(counter) - before; got != tc.want {
				t.Errorf("%v changes, want %v", got, tc.want)
			}
			if testutil.CollectAndCount(figures) == 0 {
				t.Error("the cluster is not known")
			}
			o.forget(objects.Key(tc.seen[0].ec))
			if n := testutil.CollectAndCount(figures); n != 0 {
				t.Errorf("the cluster is gone, and there are %d series", n)
			}
			noteFigure(three().ledBy(3, 99, 1, 2, 3).observed(t), three().ledBy(3, 99, 1, 2, 3).seen)
			if got := testutil.ToFloat64(counter) - before; got != tc.want {
				t.Errorf("one of the same name has %v changes", got-tc.want)
			}
			o.forget(objects.Key(tc.seen[0].ec))
		})
	}
}

// TestRegisteredMetrics: a first request is an increase.
func TestRegisteredMetrics(t *testing.T) {
	if err := registerMetrics(); err != nil {
		t.Fatal(err)
	}
	if got := testutil.CollectAndCount(session.Requests); got != 12 {
		t.Errorf("%d kinds of requests have a zero, want 12", got)
	}
}
