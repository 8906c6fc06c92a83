package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
)

// TestProgress: how far the maintenance is that status has.
func TestProgress(t *testing.T) {
	late := fmt.Errorf("no answer: %w", context.DeadlineExceeded)
	unreachable := fmt.Errorf("%w: %w", members.ErrUnreachable, late)
	begun, over := func(*maintenance) {}, func(err error) func(*maintenance) {
		return func(own *maintenance) { own.isOver, own.err, own.at = true, err, noon }
	}
	for name, tc := range map[string]struct {
		kind v1beta2.MaintenanceType
		ago  time.Duration
		// own is what the operator knows that has begun it; nil if it has not, and isOthers if another one decided it.
		own      func(*maintenance)
		isOthers bool
		pod      func(*corev1.Pod)
		isGone   bool
		want     progress
	}{
		"decided":                              {want: toBegin},
		"decided, and its pod is gone":         {isGone: true, want: notDone},
		"decided, and its pod ends":            {pod: ends, want: underWay},         // its etcd may still run
		"decided a while ago":                  {ago: beginsWithin, want: underWay}, // another one may think that it is
		"decided long ago":                     {ago: time.Hour, want: notDone},
		"begun":                                {own: begun, want: underWay},
		"begun, and past the deadline":         {own: begun, ago: time.Hour, want: underWay},
		"begun, and its clock is ahead":        {own: begun, pod: startsAt(time.Hour), want: underWay},
		"done":                                 {own: over(nil), want: done},
		"done, and its pod is gone":            {own: over(nil), isGone: true, want: done},
		"no connection":                        {own: over(unreachable), want: notDone},
		"no connection, past the deadline":     {own: over(unreachable), ago: time.Hour, want: notDone},
		"refused":                              {own: over(members.ErrAuth), want: notDone},
		"no answer":                            {own: over(late), want: underWay},
		"no answer until the deadline":         {own: over(late), ago: time.Hour, want: done},
		"cut off":                              {own: over(errors.New("cut")), want: underWay},
		"cut off, at the deadline":             {own: over(errors.New("cut")), ago: time.Hour, want: notDone},
		"cut off, and etcd has started":        {own: over(errors.New("cut")), pod: startsAt(time.Minute), want: notDone},
		"cut off, and etcd does not run":       {own: over(errors.New("cut")), pod: waits, want: notDone},
		"another operator's":                   {isOthers: true, want: underWay},
		"another operator's, at the deadline":  {isOthers: true, ago: members.DefragmentPatience(0), want: notDone},
		"another operator's, etcd has started": {isOthers: true, pod: startsAt(time.Minute), want: notDone},
		"another operator's, etcd runs":        {isOthers: true, pod: startsAt(-time.Hour), want: underWay},
		"another operator's, its pod is gone":  {isOthers: true, isGone: true, want: notDone},
		"another operator's, its pod is new":   {isOthers: true, pod: isNew, want: notDone},
		"a compaction that fails":              {kind: v1beta2.MaintenanceCompaction, own: over(members.ErrNoLeader), want: notDone},
		"a compaction that takes long":         {kind: v1beta2.MaintenanceCompaction, own: over(late), want: underWay},
	} {
		t.Run(name, func(t *testing.T) {
			w := healthy(anEtcd(), 1, 2, 3).defragments(2, tc.ago, maintenance{})
			claim := *w.ec.Status.Maintenance
			if tc.kind != "" {
				claim.Type = tc.kind
			}
			own := maintenance{Maintenance: claim}
			switch {
			case tc.isOthers:
				own = another
			case tc.own != nil:
				own.isBegun = true
				tc.own(&own)
			}
			pod := w.seen.pods[w.name(2)]
			if tc.pod != nil {
				tc.pod(pod)
			}
			if tc.isGone {
				pod = nil
			}
			if got := own.progressOf(claim, pod, noon); got != tc.want {
				t.Errorf("it is %d, want %d", got, tc.want)
			}
		})
	}
}

func ends(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: noon} }

func isNew(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(noon.Add(time.Second)) }

func waits(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerName, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
}

func startsAt(after time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		running := &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(after))}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerName, State: corev1.ContainerState{Running: running}}}
	}
}

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
	a := newAsker(nil, func() time.Time { return noon })
	a.clients[of] = connection{client: s}
	look := func() *plan {
		t.Helper()
		w.seen.maintenance = a.ask(t.Context(), w.ec, w.seen.pods, noon).maintenance
		p, err := a.decide(w.ec, w.seen)
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
	if p := look(); p.request != nil || s.statuses.Load() != 2 {
		t.Errorf("meanwhile it requests %v, and asks %d members", p.request, s.statuses.Load())
	}
	s.answer <- nil
	eventually("its end is found", func() bool { return a.decidedOn(of).isOver })
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
	a.forget(of)
	a.clients[of] = connection{client: s}
	s.answer <- nil
	if own := a.decidedOn(of); own.Member != "" {
		t.Errorf("it remembers %+v of one that is gone", own)
	}
	if err := a.begin(t.Context(), of, request{}); !errors.Is(err, loop.ErrNotNow) {
		t.Errorf("begin() without a decision = %v", err)
	}
}
