package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/members"
)

// etcd answers requests with errors, and notes them.
type etcd struct {
	members.Client
	answers map[members.What]error
	asked   []members.What
	list    []members.Member
}

func (e *etcd) List(context.Context, members.Endpoint) (members.List, error) {
	return members.List{Members: e.list}, e.answers["list"]
}

func (e *etcd) Send(_ context.Context, r members.Request) error {
	e.asked = append(e.asked, r.What)
	return e.answers[r.What]
}

// TestCarryOut: what becomes of a request, by the answer to it.
func TestCarryOut(t *testing.T) {
	cut := errors.New("the wire is cut")
	late := fmt.Errorf("no answer: %w", context.DeadlineExceeded)
	unreachable := fmt.Errorf("%w: %w", members.ErrUnreachable, late)
	ids := []members.ID{1, 2}
	for name, tc := range map[string]struct {
		request members.Request
		// answer is that to the request, list that to the question who is a member, and cancel that to cancel a downgrade.
		answer, list, cancel, want error
		// asked are the requests that were made, in order; nil for the one alone.
		asked []members.What
	}{
		"add":                            {request: members.Request{What: members.Add, Listed: ids}},
		"add, others are listed":         {request: members.Request{What: members.Add, Listed: []members.ID{1}}, want: loop.ErrNotNow, asked: []members.What{}},
		"add, no list":                   {request: members.Request{What: members.Add, Listed: ids}, list: cut, want: cut, asked: []members.What{}},
		"add, it is there":               {request: members.Request{What: members.Add}, answer: members.ErrMemberExists, want: loop.ErrNotNow},
		"add, there is a learner":        {request: members.Request{What: members.Add}, answer: members.ErrTooManyLearners, want: loop.ErrNotNow},
		"add, not all are connected":     {request: members.Request{What: members.Add}, answer: members.ErrUnhealthy, want: loop.ErrNotNow},
		"add, no answer":                 {request: members.Request{What: members.Add}, answer: late, want: late},
		"add, a downgrade is canceled":   {request: members.Request{What: members.Add, NoDowngrade: true}, want: loop.ErrNotNow, asked: []members.What{members.Downgrade}},
		"add, there is no downgrade":     {request: members.Request{What: members.Add, NoDowngrade: true}, cancel: members.ErrNoDowngrade, asked: []members.What{members.Downgrade, members.Add}},
		"add, there are no downgrades":   {request: members.Request{What: members.Add, NoDowngrade: true}, cancel: members.ErrUnsupported, asked: []members.What{members.Downgrade, members.Add}},
		"add, is there a downgrade?":     {request: members.Request{What: members.Add, NoDowngrade: true}, cancel: cut, want: cut, asked: []members.What{members.Downgrade}},
		"promote":                        {request: members.Request{What: members.Promote}},
		"promote, not yet":               {request: members.Request{What: members.Promote}, answer: members.ErrLearnerNotReady, want: loop.ErrNotNow},
		"promote a voter":                {request: members.Request{What: members.Promote}, answer: members.ErrNotLearner, want: loop.ErrNotNow},
		"remove":                         {request: members.Request{What: members.Remove, Listed: ids}},
		"remove one that is gone":        {request: members.Request{What: members.Remove}, answer: members.ErrMemberNotFound, want: loop.ErrNotNow},
		"hand over":                      {request: members.Request{What: members.MoveLeader}},
		"hand over, another leads":       {request: members.Request{What: members.MoveLeader}, answer: members.ErrNotLeader, want: loop.ErrNotNow},
		"downgrade":                      {request: members.Request{What: members.Downgrade}},
		"cancel a downgrade that is not": {request: members.Request{What: members.Downgrade}, answer: members.ErrNoDowngrade, want: loop.ErrNotNow},
		"downgrade, refused":             {request: members.Request{What: members.Downgrade}, answer: members.ErrDowngradeRefused, want: members.ErrDowngradeRefused},
		"compact":                        {request: members.Request{What: members.Compact}},
		"compact, done before":           {request: members.Request{What: members.Compact}, answer: members.ErrCompacted},
		"compact, it goes on":            {request: members.Request{What: members.Compact}, answer: late, want: loop.ErrNotNow},
		"defragment":                     {request: members.Request{What: members.Defragment}},
		"defragment, it goes on":         {request: members.Request{What: members.Defragment}, answer: late},
		"defragment, it was not reached": {request: members.Request{What: members.Defragment}, answer: unreachable, want: members.ErrUnreachable},
		"disarm":                         {request: members.Request{What: members.Disarm}},
		"disarm, cut":                    {request: members.Request{What: members.Disarm}, answer: cut, want: cut},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[members.What]error{"list": tc.list, members.Downgrade: tc.cancel}
			if tc.answer != nil {
				answers[tc.request.What] = tc.answer
			}
			e := &etcd{answers: answers, list: []members.Member{{ID: 2}, {ID: 1}}}
			a, of := newAsker(nil), key(anEtcd())
			a.clients[of] = connection{client: e}
			counted := testutil.ToFloat64(memberChanges.WithLabelValues(string(tc.request.What)))

			err := a.carryOut(t.Context(), of, request{Request: tc.request, done: space{revision: 2}, failed: space{revision: 1}})

			if !errors.Is(err, tc.want) {
				t.Errorf("carryOut() = %v, want %v", err, tc.want)
			}
			if tc.asked == nil {
				tc.asked = []members.What{tc.request.What}
			}
			if diff := cmp.Diff(tc.asked, append([]members.What{}, e.asked...)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			want := map[bool]int64{true: 2}[err == nil]
			if err != nil && !errors.Is(err, loop.ErrNotNow) {
				want = 1
			}
			if got := a.before(of).space.revision; got != want {
				t.Errorf("the making of room is at %d, want %d", got, want)
			}
			if got := testutil.ToFloat64(memberChanges.WithLabelValues(string(tc.request.What))) - counted; (got == 1) != (err == nil) {
				t.Errorf("%v were counted, with %v", got, err)
			}
		})
	}
}

// TestMakesSpace: one request after the other, each with what the one before has left.
func TestMakesSpace(t *testing.T) {
	all := []members.Alarm{{Member: 1, Type: members.NoSpace}, {Member: 3, Type: members.NoSpace}}
	w := healthy(anEtcd(), 1, 2, 3)
	for step, want := range []asks{compacts(50), defragments(2), defragments(3), defragments(1), disarms(all[0]), disarms(all[1]), nil} {
		for name, a := range w.seen.answers {
			a.status.Alarms = all[min(max(step-4, 0), 1):] // the last one is raised again
			w.seen.answers[name] = a
		}
		p := decide(w.ec, w.seen)
		if diff := w.asked(p, want); diff != "" {
			t.Fatalf("step %d (-want +got):\n%s", step, diff)
		}
		if want == nil {
			break
		}
		if failed := p.request.failed; !failed.failed.Equal(w.seen.now) || !reflect.DeepEqual(failed.defragmented, w.seen.space.defragmented) {
			t.Errorf("step %d, if it fails: %+v", step, failed)
		}
		w.seen.space = p.request.done
		w.passes(time.Second)
	}
	if !w.seen.space.isOver || w.seen.space.revision != 50 {
		t.Errorf("at the end: %+v", w.seen.space)
	}
}
