package session

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

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
		"drop history":                   {request: members.Request{What: members.DropHistory}},
		"drop history, it is dropped":    {request: members.Request{What: members.DropHistory}, answer: members.ErrCompacted},
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
		"disarm":                         {request: members.Request{What: members.Disarm}},
		"disarm, cut":                    {request: members.Request{What: members.Disarm}, answer: cut, want: cut},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[members.What]error{"list": tc.list, members.Downgrade: tc.cancel}
			if tc.answer != nil {
				answers[tc.request.What] = tc.answer
			}
			e := &etcd{answers: answers, list: []members.Member{{ID: 2}, {ID: 1}}}
			a, of := New(nil, time.Now), types.NamespacedName{Namespace: "ns", Name: "example"}
			a.clients[of] = connection{client: e}
			counted := testutil.ToFloat64(Requests.WithLabelValues(string(tc.request.What)))

			err := a.CarryOut(t.Context(), of, Request{Request: tc.request})

			if !errors.Is(err, tc.want) {
				t.Errorf("carryOut() = %v, want %v", err, tc.want)
			}
			if tc.asked == nil {
				tc.asked = []members.What{tc.request.What}
			}
			if diff := cmp.Diff(tc.asked, append([]members.What{}, e.asked...)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if got := testutil.ToFloat64(Requests.WithLabelValues(string(tc.request.What))) - counted; (got == 1) != (err == nil) {
				t.Errorf("%v were counted, with %v", got, err)
			}
		})
	}
}
