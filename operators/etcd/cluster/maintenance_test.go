package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
)

// slow is a member that takes its time.
type slow struct {
	members.Client
	asked    chan members.Request
	answer   chan error
	statuses atomic.Int64
}

func (s *slow) Send(_ context.Context, r members.Request) error {
	s.asked <- r
	return <-s.answer
}

func (s *slow) Status(context.Context, members.Endpoint) (members.Status, error) {
	s.statuses.Add(1)
	return members.Status{}, errors.New("it does not answer")
}

func (s *slow) Close() error { return nil }

// TestBackground: a defragmentation holds nobody up, and its end is found by the next look.
func TestBackground(t *testing.T) {
	w := healthy(anEtcd(), 1, 2, 3).alarms(noSpace).compacts(50)
	of, s := objects.Key(w.ec), &slow{asked: make(chan members.Request), answer: make(chan error)}
	o := &observer{asker: session.New(func(*tls.Config, members.User) (members.Client, error) { return s, nil }, func() time.Time { return noon })}
	a := o.asker
	if err := a.Renew(w.ec, objects.Certificates{}, members.User{}); err != nil {
		t.Fatal(err)
	}
	look := func() *plan {
		t.Helper()
		w.seen.Maintenance = a.Ask(t.Context(), w.ec, w.seen.Pods, noon).Maintenance
		p, err := o.decide(w.ec, w.seen)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	begin := func() error {
		t.Helper()
		p := look()
		if len(p.Writes) == 0 {
			t.Fatal("it does nothing")
		}
		call, isCall := p.Writes[len(p.Writes)-1].(loop.Call)
		if !isCall {
			t.Fatalf("it does %q", w.doing(p))
		}
		return call.Do(t.Context(), loop.Caller{})
	}
	eventually := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not so: %s", what)
			}
		}
	}

	w.stores(look())
	if err := begin(); err != nil {
		t.Fatal(err)
	}
	if r := <-s.asked; r.What != members.Defragment || r.Patience < time.Minute {
		t.Errorf("it requests %+v", r)
	}
	s.statuses.Store(0)
	if p := look(); p.Request != nil || s.statuses.Load() != 2 {
		t.Errorf("meanwhile it requests %v, and asks %d members", p.Request, s.statuses.Load())
	}
	s.answer <- nil
	eventually("its end is found", func() bool {
		return a.Ask(t.Context(), w.ec, nil, noon).Maintenance.IsOver
	})
	s.statuses.Store(0)
	p := look()
	if next := p.memory.Maintenance; next == nil || next.Member != w.name(3) || s.statuses.Load() != 3 {
		t.Errorf("the next is %v, and it asks %d members", next, s.statuses.Load())
	}

	// It is deleted, and there is another one of the name, before there is an answer.
	w.stores(p)
	if err := begin(); err != nil {
		t.Fatal(err)
	}
	<-s.asked
	a.Forget(of)
	if err := a.Renew(w.ec, objects.Certificates{}, members.User{}); err != nil {
		t.Fatal(err)
	}
	s.answer <- nil
	if own := a.Ask(t.Context(), w.ec, nil, noon).Maintenance; own.Member != "" {
		t.Errorf("it remembers %+v of one that is gone", own)
	}
	if err := a.CarryOut(t.Context(), of, session.Request{Request: members.Request{What: members.Compact}}); !errors.Is(err, loop.ErrNotNow) {
		t.Errorf("carryOut() without a decision = %v", err)
	}
}
