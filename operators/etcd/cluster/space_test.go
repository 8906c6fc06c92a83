package cluster

import (
	"context"
	"testing"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/rollout"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/step"
)

// TestDecideFull: what is done about a full database, and while a member is being defragmented.
func TestDecideFull(t *testing.T) {
	requireDecisions(t, map[string]decision{
		"a full database: drop the history": {world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace), want: "status/maintenance: Compaction of #1"},
		"a full database, and one is down": {
			world: healthy(anEtcd(), 1, 2, 3).silences(3).alarms(noSpace), want: "status/maintenance: Compaction of #1",
		},
		"its history is dropped: smaller files": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace).compacts(50), want: "status/maintenance: Defragmentation of #2",
		},
		"one is down: the leader's is the last": {
			world: healthy(anEtcd(), 1, 2, 3).silences(3).alarms(noSpace).compacts(50, 2), want: "status/maintenance: Defragmentation of #1",
		},
		"decided: request it": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace).compacts(50).defragments(2, 0, session.Maintenance{}), asks: defragments(2), problem: "DatabaseFull: ",
		},
		"decided, and the leader's: request it": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace).compacts(50, 2, 3).defragments(1, 0, session.Maintenance{}), asks: defragments(1), problem: "DatabaseFull: ",
		},
		"decided, and too late to request it: wait": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace).compacts(50).defragments(2, session.BeginsWithin, session.Maintenance{}), problem: "DatabaseFull: ",
		},
		"requested: nothing else is changed": {
			world:   healthy(anEtcd(version("3.6.15"), size(2)), 1, 2, 3).alarms(noSpace).compacts(50).defragments(2, time.Minute, session.Maintenance{IsBegun: true}),
			problem: "DatabaseFull: The database is full, and takes no writes: member ",
		},
		"requested of one that is alone": {
			world: healthy(anEtcd(size(1)), 1).remembers().defragments(1, time.Minute, session.Maintenance{IsBegun: true}),
		},
		"requested by another operator: wait": {
			world: healthy(anEtcd(version("3.6.15"), size(2)), 1, 2, 3).defragments(2, 30*time.Second, another),
		},
		"by another one, and it is time: again": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace).compacts(50).defragments(2, time.Hour, another).hears(2).alarms(noSpace),
			want:  "status/maintenance: Defragmentation of #2",
		},
		"done: the next": {
			world: healthy(anEtcd(), 1, 2, 3).compacts(50).defragments(2, time.Minute, session.Maintenance{IsBegun: true, IsOver: true}).hears(2).alarms(noSpace),
			want:  "status/maintenance: Defragmentation of #3",
		},
		"no answer in time: the next": {
			world: healthy(anEtcd(), 1, 2, 3).compacts(50).defragments(2, time.Hour, session.Maintenance{IsBegun: true, IsOver: true, Err: context.DeadlineExceeded, At: noon.Add(-time.Minute)}).alarms(noSpace),
			want:  "status/maintenance: Defragmentation of #3",
		},
		"it failed: everything else first": {
			world: healthy(anEtcd(), 1, 2, 3).loses(3).compacts(50).
				defragments(2, time.Minute, session.Maintenance{IsBegun: true, IsOver: true, Err: members.ErrUnreachable, At: noon}).hears(2).alarms(noSpace),
			want: "status/maintenance", asks: removes(1, 3, 1, 2, 3),
		},
		"it failed, and its pod is gone: the next": {
			world: healthy(anEtcd(onVolumes), 1, 2, 3).compacts(50).defragments(2, time.Minute, another).losesPod(2).alarms(noSpace),
			want:  "create Pod #2; status/maintenance: Defragmentation of #3",
		},
		"all files are smaller: end the alarm": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace).compacts(50, 1, 2, 3), asks: disarms(noSpace),
		},
		"full again, without a write: report it": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace).compacts(50, 1, 2, 3).resolves(time.Minute), problem: "DatabaseFull: The database is full, and it is not its history",
		},
		"full again, by one that was down then": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace).compacts(50, 1, 2).resolves(time.Minute), want: "status/maintenance: Defragmentation of #3",
		},
		"full again, minutes later: again": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace).compacts(50, 1, 2, 3).resolves(rollout.EmptyAgain), want: "status/maintenance: Compaction of #1",
		},
		"full again, after a write: again": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace).compacts(49, 1, 2, 3).resolves(time.Minute), want: "status/maintenance: Compaction of #1",
		},
		"it was down then: make its file smaller": {
			world: healthy(anEtcd(), 1, 2, 3).swells(3).compacts(49, 1, 2).resolves(time.Minute), want: "status/maintenance: Defragmentation of #3",
		},
		"it was not down then: leave it": {world: healthy(anEtcd(), 1, 2, 3).swells(3).compacts(49, 1, 2, 3).resolves(time.Minute)},
	})
}

var noSpace = members.Alarm{Member: 3, Type: members.NoSpace}

// compacts has a full database whose history is dropped, and members that were defragmented since.
func (w *world) compacts(revision int64, defragmented ...int64) *world {
	full := &v1beta2.FullDatabase{CompactedRevision: revision}
	for _, n := range defragmented {
		full.DefragmentedMembers = append(full.DefragmentedMembers, w.name(n))
	}
	w.ec.Status.FullDatabase = full
	return w
}

// resolves has no alarm been left, so long ago.
func (w *world) resolves(ago time.Duration) *world {
	w.ec.Status.FullDatabase.ResolvedTime = step.TimeOf(noon.Add(-ago))
	return w
}

// another is what an operator knows of maintenance that another one has decided on.
var another = session.Maintenance{Maintenance: v1beta2.Maintenance{Member: "another"}}

// defragments has the defragmentation of a member in status, decided on so long ago by the operator that knows that.
func (w *world) defragments(n int64, ago time.Duration, own session.Maintenance) *world {
	start := noon.Add(-ago)
	w.ec.Status.Maintenance = &v1beta2.Maintenance{
		Type: v1beta2.MaintenanceDefragmentation, Member: w.name(n), StartTime: *step.TimeOf(start), Deadline: *step.TimeOf(start.Add(members.DefragmentPatience(1 << 20))),
	}
	if own.Member == "" {
		own.Maintenance = *w.ec.Status.Maintenance
	}
	w.seen.Maintenance = own
	w.seen.Answers[w.name(n)] = session.Answer{Err: session.ErrDefragmenting}
	return w
}

// swells has the file of a member be greater than those of the others.
func (w *world) swells(n int64) *world {
	w.answer(n, func(a *session.Answer) { a.Status.DBSize = 4 << 20 })
	return w
}

// stores has status remember what a plan does.
func (w *world) stores(p *plan) *world {
	w.ec.Status.Maintenance, w.ec.Status.FullDatabase = p.memory.Maintenance, p.memory.FullDatabase
	return w
}

// TestMakesSpace: one request after the other, each with what the one before has left in status.
func TestMakesSpace(t *testing.T) {
	all := []members.Alarm{{Member: 1, Type: members.NoSpace}, {Member: 3, Type: members.NoSpace}}
	w := healthy(anEtcd(), 1, 2, 3)
	raise := func(alarms ...members.Alarm) {
		for name, a := range w.seen.Answers {
			a.Status.Alarms = alarms
			w.seen.Answers[name] = a
		}
	}
	raise(all...)
	for step, want := range []asks{compacts(50), defragments(2), defragments(3), defragments(1)} {
		p := decide(w.ec, w.seen)
		if p.Claim != "maintenance" || p.Request != nil {
			t.Fatalf("step %d: it does not say so before: %q, %v", step, w.doing(p), p.Request)
		}
		w.stores(p).seen.Maintenance = session.Maintenance{Maintenance: *p.memory.Maintenance}
		p = decide(w.ec, w.seen)
		if diff := w.asked(p, want); diff != "" {
			t.Fatalf("step %d (-want +got):\n%s", step, diff)
		}
		w.seen.Maintenance.IsBegun = true
		if p = decide(w.ec, w.seen); p.Request != nil || p.Claim != "" {
			t.Errorf("step %d: it does not wait: %q, %v", step, w.doing(p), p.Request)
		}
		w.seen.Maintenance.IsOver = true
	}
	for _, alarm := range all {
		p := decide(w.ec, w.seen)
		if diff := w.asked(p, disarms(alarm)); diff != "" {
			t.Fatalf("at the end (-want +got):\n%s", diff)
		}
		w.stores(p)
		raise(all[1])
	}
	raise()
	w.stores(decide(w.ec, w.seen))
	if full := w.ec.Status.FullDatabase; full == nil || full.CompactedRevision != 50 || len(full.DefragmentedMembers) != 3 || !full.ResolvedTime.Time.Equal(noon) {
		t.Errorf("status has %+v", full)
	}
	raise(all[1])
	p := decide(w.ec, w.seen)
	if p.Request != nil || p.Claim != "" || p.Problem == nil || p.Problem.Retriable {
		t.Errorf("full again, it does %q, and reports %v", w.doing(p), p.Problem)
	}
	raise()
	for name, a := range w.seen.Answers {
		a.Status.Revision = 51
		w.seen.Answers[name] = a
	}
	if p = decide(w.ec, w.seen); p.memory.FullDatabase != nil {
		t.Errorf("after a write, status has %+v", p.memory.FullDatabase)
	}
	w.silences(2)
	w.ec.Status.FullDatabase.DefragmentedMembers = w.ec.Status.FullDatabase.DefragmentedMembers[1:]
	if p = decide(w.ec, w.seen); p.memory.FullDatabase == nil {
		t.Error("one was down then, and still is, and status has forgotten that")
	}
}

// TestRests: a database is looked at before it can be full.
func TestRests(t *testing.T) {
	for name, tc := range map[string]struct {
		size, quota int64
		variable    string
		want        time.Duration
	}{
		"little in it":                         {size: 1 << 20, quota: 2 << 30, want: step.RestingWake},
		"half full":                            {size: 1024 << 20, quota: 2 << 30, want: 16 * time.Second},
		"empty":                                {size: 20 << 10, quota: 2 << 30, want: step.RestingWake},
		"nearly full":                          {size: 2000 << 20, quota: 2 << 30, want: rollout.ShortestWake},
		"more than full":                       {size: 3 << 30, quota: 2 << 30, want: rollout.ShortestWake},
		"never full":                           {size: 3 << 30, quota: -1, want: step.RestingWake},
		"before 3.6, with etcd's quota":        {size: 1024 << 20, want: 16 * time.Second},
		"before 3.6, with a variable":          {size: 1 << 20, variable: "4194304", want: rollout.ShortestWake},
		"before 3.6, with one that is no size": {size: 1024 << 20, variable: "much", want: 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			ec := anEtcd()
			if tc.variable != "" {
				withQuota(tc.variable)(ec)
			}
			w := healthy(ec, 1, 2, 3)
			w.answer(2, func(a *session.Answer) {
				a.Status.DBSize, a.Status.DBSizeInUse, a.Status.Quota = tc.size, tc.size, tc.quota
			})
			p := decide(w.ec, w.seen)
			if got := p.WakeAt.Sub(noon); got != tc.want {
				t.Errorf("it is looked at again after %s, want %s", got, tc.want)
			}
		})
	}
}
