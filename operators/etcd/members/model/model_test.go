package model

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/operators/etcd/members"
)

// play is a script of a situation with members a, b and c.
type play struct {
	*testing.T
	*World
	clock  time.Time
	disks  map[string]*Disk
	client members.Client
}

func newPlay(t *testing.T, names string) *play {
	p := &play{T: t, clock: time.Unix(1e9, 0), disks: map[string]*Disk{}}
	p.World = New(func() time.Time { return p.clock })
	p.client = p.as(root)
	for _, n := range strings.Split(names, "") {
		p.start(n, names, false, "3.6.16", "")
	}
	p.pass(10 * time.Second)
	return p
}

func (p *play) start(name, cluster string, existing bool, version, exit string) {
	p.Helper()
	if p.disks[name] == nil {
		p.disks[name] = p.NewDisk()
	}
	var list []string
	for _, n := range strings.Split(cluster, "") {
		list = append(list, n+"=http://"+n+":2380")
	}
	_, got := p.Start(Config{
		Name: name, PeerURL: "http://" + name + ":2380", Address: name + ":2379", Version: version,
		InitialCluster: strings.Join(list, ","), Existing: existing, Disk: p.disks[name],
	})
	if exit == "" && got != "" || !strings.Contains(got, exit) {
		p.Errorf("start %s: %q, not %q", name, got, exit)
	}
}

func (p *play) pass(d time.Duration) {
	for end := p.clock.Add(d); ; {
		next := p.Next()
		if next.IsZero() || next.After(end) {
			p.clock = end
			p.Tick()
			return
		}
		p.clock = next
	}
}

func (p *play) as(who members.User) members.Client {
	c, _ := p.Connect(nil, who)
	return c
}

func (p *play) want(what string, got, want error) {
	p.Helper()
	if !errors.Is(got, want) {
		p.Errorf("%s: %v, not %v", what, got, want)
	}
}

func (p *play) put(at string, want error) {
	p.Helper()
	_, err := p.Put(at + ":2379")
	p.want("put", err, want)
}

func (p *play) add(at, name string, learner bool, want error) {
	p.Helper()
	err := p.client.Send(context.Background(), members.Request{What: members.Add, At: on(at), PeerURLs: []string{"http://" + name + ":2380"}, Learner: learner})
	p.want("add", err, want)
}

func on(name string) members.Endpoint { return members.Endpoint{Address: name + ":2379"} }

func TestSituations(t *testing.T) {
	ctx := context.Background()
	cases := map[string]struct {
		names string
		do    func(*play)
	}{
		"one member serves":              {"a", func(p *play) { p.put("a", nil) }},
		"three members serve":            {"abc", func(p *play) { p.put("b", nil) }},
		"two of three serve":             {"abc", func(p *play) { p.Kill("a"); p.pass(2 * time.Second); p.put("b", nil) }},
		"one of three does not":          {"abc", func(p *play) { p.Kill("a"); p.Kill("b"); p.put("c", members.ErrNoLeader) }},
		"a stopped leader hands over":    {"abc", func(p *play) { p.Stop("a"); p.put("b", nil) }},
		"a cut-off leader leads no more": {"abc", func(p *play) { p.Unreachable("a", false, true); p.put("a", members.ErrNoLeader) }},
		"a paused member does not answer": {"abc", func(p *play) {
			p.Pause("b")
			p.put("b", ErrNoAnswer)
			p.Resume("b")
			p.pass(time.Second)
			p.put("b", nil)
		}},
		"no voter is added with one of three dead": {"abc", func(p *play) { p.Kill("c"); p.pass(9 * time.Second); p.add("a", "d", false, members.ErrUnhealthy) }},
		"a dead member can be removed": {"abc", func(p *play) {
			p.Kill("c")
			p.want("remove", p.client.Send(ctx, members.Request{What: members.Remove, At: on("a"), ID: p.disks["c"].Member()}), nil)
			p.start("c", "abc", false, "3.6.16", "permanently removed")
			p.pass(time.Second)
			if running, _ := p.IsRunning("c"); running {
				p.Error("a removed member runs")
			}
		}},
		"nobody is added for five seconds after a start": {"abc", func(p *play) {
			p.Stop("c")
			p.start("c", "abc", false, "3.6.16", "")
			p.pass(time.Second)
			p.add("a", "d", true, members.ErrUnhealthy)
		}},
		"a learner joins and is promoted": {"a", func(p *play) {
			p.add("a", "b", true, nil)
			p.add("a", "c", true, members.ErrTooManyLearners)
			p.start("b", "ab", true, "3.6.16", "")
			p.want("promote", p.client.Send(ctx, members.Request{What: members.Promote, At: on("a"), ID: p.disks["b"].Member()}), members.ErrLearnerNotReady)
			p.pass(time.Second)
			p.want("promote", p.client.Send(ctx, members.Request{What: members.Promote, At: on("a"), ID: p.disks["b"].Member()}), nil)
			p.put("b", nil)
		}},
		"a list that is not the cluster's": {"abc", func(p *play) { p.start("d", "ad", true, "3.6.16", "member count is unequal") }},
		"a name that is not in the list":   {"a", func(p *play) { p.start("d", "ab", false, "3.6.16", "couldn't find local name") }},
		"an empty disk with new": {"abc", func(p *play) {
			p.Kill("c")
			p.disks["c"].Wipe()
			p.start("c", "abc", false, "3.6.16", "already been bootstrapped")
		}},
		"an empty disk with existing": {"abc", func(p *play) { p.Kill("c"); p.disks["c"].Wipe(); p.start("c", "abc", true, "3.6.16", "out of range") }},
		"all disks lost form the same cluster": {"abc", func(p *play) {
			p.put("a", nil)
			id := p.disks["a"].Cluster()
			for _, n := range []string{"a", "b", "c"} {
				p.Kill(n)
				p.disks[n].Wipe()
			}
			for _, n := range []string{"a", "b"} {
				p.start(n, "abc", false, "3.6.16", "")
			}
			p.pass(2 * time.Second)
			p.put("a", nil)
			if len(p.Lost()) != 1 || p.disks["a"].Cluster() != id {
				p.Errorf("lost: %v", p.Lost())
			}
		}},
		"an older binary": {"a", func(p *play) { p.Stop("a"); p.start("a", "a", false, "3.5.35", "invalid downgrade") }},
		"a newer binary":  {"a", func(p *play) { p.Stop("a"); p.start("a", "a", false, "3.7.3", "") }},
		"a downgrade by two": {"a", func(p *play) {
			p.want("downgrade", p.client.Send(ctx, members.Request{What: members.Downgrade, At: on("a"), Version: "3.4"}), members.ErrDowngradeRefused)
		}},
		"a downgrade": {"a", func(p *play) {
			p.want("downgrade", p.client.Send(ctx, members.Request{What: members.Downgrade, At: on("a"), Version: "3.5"}), nil)
			p.pass(time.Second)
			p.Stop("a")
			p.start("a", "a", false, "3.5.35", "")
		}},
		"nobody joins while a downgrade is enabled": {"abc", func(p *play) {
			p.want("downgrade", p.client.Send(ctx, members.Request{What: members.Downgrade, At: on("a"), Version: "3.5"}), nil)
			p.pass(time.Second)
			p.add("a", "d", true, nil)
			p.start("d", "abcd", true, "3.6.16", "incompatible with current running cluster")
			p.start("d", "abcd", true, "3.5.35", "incompatible with current running cluster")
			p.pass(time.Minute) // etcd does not end it
			p.start("d", "abcd", true, "3.6.16", "incompatible with current running cluster")
			p.want("cancel", p.client.Send(ctx, members.Request{What: members.Downgrade, At: on("a")}), nil)
			p.start("d", "abcd", true, "3.6.16", "")
		}},
		"nothing to cancel": {"a", func(p *play) {
			p.want("cancel", p.client.Send(ctx, members.Request{What: members.Downgrade, At: on("a")}), members.ErrNoDowngrade)
		}},
		"compacted twice": {"a", func(p *play) {
			p.put("a", nil)
			p.want("compact", p.client.Send(ctx, members.Request{What: members.Compact, At: on("a"), Revision: 2}), nil)
			p.want("compact", p.client.Send(ctx, members.Request{What: members.Compact, At: on("a"), Revision: 2}), members.ErrCompacted)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { p := newPlay(t, tc.names); p.T = t; tc.do(p) })
	}
}

func BenchmarkHistory(b *testing.B) {
	for b.Loop() {
		clock := time.Unix(1e9, 0)
		w := New(func() time.Time { return clock })
		for _, n := range []string{"a", "b", "c"} {
			w.Start(Config{
				Name: n, PeerURL: "http://" + n + ":2380", Address: n + ":2379", Version: "3.6.16",
				InitialCluster: "a=http://a:2380,b=http://b:2380,c=http://c:2380", Disk: w.NewDisk(),
			})
		}
		clock = clock.Add(2 * time.Second)
		client, _ := w.Connect(nil, members.User{})
		for range 300 {
			_, _ = client.Status(b.Context(), on("a"))
			_, _ = w.Put("b:2379")
		}
		if len(w.Acknowledged()) != 300 {
			b.Fatal("writes were refused")
		}
	}
}
