package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/store"
	"example.com/fairlead/operators/etcd/task"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestOrder(t *testing.T) {
	const cluster = members.ID(7)
	is := func(url string, id members.ID, applied uint64, change ...func(*member)) member {
		m := member{url: url, status: members.Status{ClusterID: cluster, ID: id, Leader: 1, Applied: applied}}
		for _, c := range change {
			c(&m)
		}
		return m
	}
	silent := func(err error) func(*member) {
		return func(m *member) { m.status, m.err = members.Status{}, err }
	}
	dead := silent(fmt.Errorf("%w: connection refused", members.ErrUnreachable))
	corrupt := func(m *member) { m.status.Alarms = []members.Alarm{{Member: 2, Type: members.Corrupt}} }
	for name, tc := range map[string]struct {
		asked  []member
		want   []string
		reason string
		says   string
	}{
		"a follower before the leader": {asked: []member{is("a", 1, 9), is("b", 2, 8)}, want: []string{"b", "a"}},
		"the one that applied most":    {asked: []member{is("a", 1, 9), is("b", 2, 7), is("c", 3, 8)}, want: []string{"c", "b", "a"}},
		"the leader alone":             {asked: []member{is("a", 1, 9), is("b", 2, 0, dead)}, want: []string{"a"}},
		"one member at two endpoints":  {asked: []member{is("a", 2, 9), is("b", 2, 9)}, want: []string{"a"}},
		"no learner":                   {asked: []member{is("a", 1, 9), is("b", 2, 9, func(m *member) { m.status.IsLearner = true })}, want: []string{"a"}},
		"one that is full": {asked: []member{is("b", 2, 9, func(m *member) {
			m.status.Alarms = []members.Alarm{{Member: 2, Type: members.NoSpace}}
		})}, want: []string{"b"}},
		"none while one is said to be corrupt, whoever": {
			asked: []member{is("a", 1, 9, corrupt), is("b", 2, 9, corrupt)}, reason: task.ReasonEtcdUnhealthy,
			says: "No member can be backed up: a knows of an alarm CORRUPT: etcd's members do not have the same data, and it is not known whose is right; " +
				"b knows of an alarm CORRUPT: etcd's members do not have the same data, and it is not known whose is right",
		},
		"nobody leads": {
			asked: []member{is("a", 1, 9, func(m *member) { m.status.Leader = 0 }), is("b", 2, 0, dead)}, reason: task.ReasonEtcdUnhealthy,
			says: "No member can be backed up: a has no leader; b: cannot be reached: connection refused",
		},
		"nobody answers": {asked: []member{is("a", 1, 0, dead)}, reason: task.ReasonEtcdUnreachable, says: "No member answers: a: cannot be reached: connection refused"},
		"users":          {asked: []member{is("a", 1, 0, silent(members.ErrAuth))}, reason: task.ReasonEtcdRefuses, says: refusal},
		"two clusters": {
			asked: []member{is("a", 1, 9), is("b", 2, 9, func(m *member) { m.status.ClusterID = 8 })}, reason: task.ReasonEtcdUnhealthy,
			says: "a and b are of different clusters: a backup is of one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			good, err := order(tc.asked)
			var got []string
			for _, m := range good {
				got = append(got, m.url)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
			var p *task.Problem
			if errors.As(err, &p) != (tc.reason != "") || p != nil && (p.Reason != tc.reason || p.Message != tc.says) {
				t.Errorf("problem %+v, want %s: %s", p, tc.reason, tc.says)
			}
		})
	}
}

func TestExpired(t *testing.T) {
	at := func(number, revision int64, age time.Duration) store.Object {
		when := noon.Add(-age)
		return store.Object{Key: store.KeyOf("b", revision, when), Meta: store.Meta{Number: number, Revision: revision, Time: when}}
	}
	days := func(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }
	nine, ten, hundred := at(1, 9, days(3)), at(2, 10, days(2)), at(3, 100, days(1))
	for name, tc := range map[string]struct {
		own  []store.Object
		keep task.Retention
		want []store.Object
	}{
		"all":                         {own: []store.Object{nine, ten, hundred}},
		"the last one":                {own: []store.Object{hundred, nine, ten}, keep: task.Retention{Max: 1}, want: []store.Object{nine, ten}},
		"9 before 10":                 {own: []store.Object{nine, ten}, keep: task.Retention{Max: 1}, want: []store.Object{nine}},
		"99 before 100":               {own: []store.Object{hundred, at(2, 99, days(2))}, keep: task.Retention{Max: 1}, want: []store.Object{at(2, 99, days(2))}},
		"the one that was proved":     {own: []store.Object{nine, ten, hundred}, keep: task.Retention{Max: 1, Proved: nine.Key}, want: []store.Object{ten}},
		"the one that was made last":  {own: []store.Object{nine, ten, hundred}, keep: task.Retention{Max: 1, Last: ten.Key}, want: []store.Object{nine}},
		"by age, but for two":         {own: []store.Object{nine, ten, hundred}, keep: task.Retention{MaxAge: time.Hour}, want: []store.Object{nine}},
		"by age, the proved one":      {own: []store.Object{nine, ten, hundred}, keep: task.Retention{MaxAge: time.Hour, Proved: nine.Key}},
		"young":                       {own: []store.Object{nine, ten, hundred}, keep: task.Retention{MaxAge: days(4)}},
		"by both":                     {own: []store.Object{nine, ten, hundred}, keep: task.Retention{MaxAge: days(4), Max: 2}, want: []store.Object{nine}},
		"after a restore, and a jump": {own: []store.Object{at(4, 5, days(-300)), at(5, 3, days(0)), at(6, 4, days(0))}, keep: task.Retention{Max: 2}, want: []store.Object{at(4, 5, days(-300))}},
		"the same number":             {own: []store.Object{at(0, 9, days(1)), at(0, 10, days(2))}, keep: task.Retention{Max: 1}, want: []store.Object{at(0, 10, days(2))}},
		"none":                        {keep: task.Retention{Max: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, expired(tc.own, tc.keep, noon)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessageFits(t *testing.T) {
	for name, r := range map[string]task.Result{
		"saved":    {Saved: &v1beta2.StoredBackup{Key: strings.Repeat("k", 1024)}},
		"short":    {Problem: &task.Problem{Reason: "R", Message: "short"}},
		"long":     {Problem: &task.Problem{Reason: "R", Message: strings.Repeat("long ", 10000), Retriable: true}},
		"escaped":  {Problem: &task.Problem{Reason: "R", Message: strings.Repeat("\x01", 10000)}},
		"no ASCII": {Problem: &task.Problem{Reason: "R", Message: strings.Repeat("ä€", 10000)}},
	} {
		var got task.Result
		text := message(r)
		if err := json.Unmarshal(text, &got); err != nil || len(text) > mostMessage {
			t.Fatalf("%s: %d bytes: %v", name, len(text), err)
		}
		if r.Problem != nil && (got.Problem.Reason != r.Problem.Reason || got.Problem.Retriable != r.Problem.Retriable || got.Problem.Message == "") {
			t.Errorf("%s: %+v", name, got.Problem)
		}
		if r.Saved != nil && !cmp.Equal(got, r) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What does not work is reported, also when the operator is of another version than the agent.
func TestBadTasks(t *testing.T) {
	todo := func(change func(*task.Task)) string {
		all := task.Task{
			Action: task.Save, Owner: "uid", Timeout: time.Second, Endpoints: []string{"http://127.0.0.1:1"},
			Place: task.Place{Type: v1beta2.StorageClaim, Bucket: "claim", Key: "key"},
		}
		change(&all)
		text, _ := json.Marshal(all)
		return string(text)
	}
	for name, tc := range map[string]struct {
		args   []string
		reason string
	}{
		"none":           {nil, task.ReasonTaskInvalid},
		"no JSON":        {[]string{"{"}, task.ReasonTaskInvalid},
		"no action":      {[]string{todo(func(t *task.Task) { t.Action = "Dance" })}, task.ReasonTaskInvalid},
		"no timeout":     {[]string{todo(func(t *task.Task) { t.Timeout = 0 })}, task.ReasonTaskInvalid},
		"no owner":       {[]string{todo(func(t *task.Task) { t.Owner = "" })}, task.ReasonTaskInvalid},
		"no endpoints":   {[]string{todo(func(t *task.Task) { t.Endpoints = nil })}, task.ReasonTaskInvalid},
		"no member":      {[]string{todo(func(t *task.Task) { t.Action = task.Fetch })}, task.ReasonTaskInvalid},
		"nothing saved":  {[]string{todo(func(t *task.Task) { t.Action, t.Member = task.Prove, &task.Member{} })}, task.ReasonTaskInvalid},
		"nothing kept":   {[]string{todo(func(t *task.Task) { t.Action = task.Prune })}, task.ReasonTaskInvalid},
		"no URL":         {[]string{todo(func(t *task.Task) { t.Endpoints = []string{"::"} })}, task.ReasonEtcdUnreachable},
		"dead":           {[]string{todo(func(*task.Task) {})}, task.ReasonEtcdUnreachable},
		"no certificate": {[]string{todo(func(t *task.Task) { t.TLS = true })}, task.ReasonCertificateInvalid},
		"no user":        {[]string{todo(func(t *task.Task) { t.User = true })}, task.ReasonUserInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			a := &agent{certificateDir: t.TempDir(), userDir: t.TempDir(), volumeDir: t.TempDir(), now: time.Now, log: t.Output()}
			if got := a.main(t.Context(), tc.args); got.Problem == nil || got.Problem.Reason != tc.reason || got.Problem.Message == "" {
				t.Errorf("%+v, want %s", got.Problem, tc.reason)
			}
		})
	}
}

// hanging is where connections are accepted, and nothing is said.
func hanging(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

func TestHangingEndpoint(t *testing.T) {
	began := time.Now()
	asked, err := status(t.Context(), []string{hanging(t), hanging(t), hanging(t)}, nil, members.User{})
	if err != nil || len(asked) != 3 || asked[0].err == nil {
		t.Errorf("%+v: %v", asked, err)
	}
	if took := time.Since(began); took > 3*members.Patience {
		t.Errorf("it took %s", took)
	}
}
