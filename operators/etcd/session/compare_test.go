package session

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/operators/etcd/members"
)

// hasher is a member that is asked for nothing but its hash.
type hasher struct {
	members.Client
	asked []int64
	hash  uint32
	err   error
}

func (h *hasher) Hash(_ context.Context, _ members.Endpoint, revision int64, _ time.Duration) (members.Hash, error) {
	h.asked = append(h.asked, revision)
	if h.err != nil {
		return members.Hash{}, h.err
	}
	return members.Hash{Revision: revision, Sum: h.hash}, nil
}

// TestCompare: hashes are asked for only while there is an alarm CORRUPT, all at the revision that the last voter has.
func TestCompare(t *testing.T) {
	now := midday
	a := New(nil, func() time.Time { return now })
	ec := &v1beta2.EtcdCluster{Status: v1beta2.EtcdClusterStatus{ClusterID: "c1"}}
	ctx := outside.WithBackground(t.Context(), func(do func()) { do() })
	all := map[string]*hasher{"a": {hash: 1}, "b": {hash: 2}, "learner": {hash: 3}, "another's": {hash: 4}}
	to := func(name string) (members.Client, members.Endpoint) {
		return all[name], members.Endpoint{Address: name}
	}
	answers := func(alarms ...members.Alarm) map[string]Answer {
		return map[string]Answer{
			"a":         {Status: members.Status{ClusterID: 0xc1, ID: 1, Revision: 8, Alarms: alarms}},
			"b":         {Status: members.Status{ClusterID: 0xc1, ID: 2, Revision: 7, Alarms: alarms}},
			"learner":   {Status: members.Status{ClusterID: 0xc1, ID: 3, Revision: 5, IsLearner: true}},
			"another's": {Status: members.Status{ClusterID: 0xc2, ID: 4, Revision: 2, Alarms: alarms}},
			"silent":    {Err: errors.New("timeout")},
		}
	}
	ask := func(of map[string]Answer) map[string]Answer {
		a.compare(ctx, ec, to, of)
		return of
	}
	want := func(when, name string, revisions ...int64) {
		t.Helper()
		if got := all[name].asked; !slices.Equal(got, revisions) {
			t.Errorf("%s, %s was asked for the hash of revisions %v, want %v", when, name, got, revisions)
		}
	}
	ask(answers(members.Alarm{Member: 1, Type: members.NoSpace}))
	want("without an alarm CORRUPT", "a")

	corrupt := members.Alarm{Type: members.Corrupt}
	all["b"].err = errors.New("no answer")
	got := ask(answers(corrupt))
	want("with one", "a", 7)
	want("with one", "learner", 7)
	want("of another cluster", "another's")
	if a, b := got["a"], got["b"]; a.Hash.Sum != 1 || b.Hash.Sum != 0 || b.HashErr == nil {
		t.Errorf("a has hash %+v, and b %+v, %v", a.Hash, b.Hash, b.HashErr)
	}
	now = now.Add(hashAgain)
	all["b"].err = nil
	if got = ask(answers(corrupt)); got["b"].Hash.Sum != 2 {
		t.Errorf("b has hash %+v, which it has told: %v", got["b"].Hash, got["b"].HashErr)
	}
	want("a moment later", "a", 7)
	want("a moment later", "b", 7, 7)
	now = now.Add(hashLasts)
	ask(answers(corrupt))
	want("later", "a", 7, 7)
	ask(answers())
	if len(a.hashes) > 0 {
		t.Error("without an alarm, hashes are kept")
	}
}
