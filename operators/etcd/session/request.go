package session

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/metrics"
	"example.com/fairlead/operators/etcd/members"
)

// This file is about requests to members that change something. decide says which one is to be made, as a
// value: at most one in a reconcile.

// Requests counts what was requested and done.
var Requests = metrics.Counter("fairlead_etcd_member_requests_total",
	"Changes that were requested from members of etcd and done, by kind: add, promote, rewrite, remove, move leader, downgrade, defragment, compact, drop history, disarm, enable authentication, set password.",
	"change")

// Request is a request to a member, with what is known when it has been made.
type Request struct {
	members.Request
	// IsElsewhere says that the member that is asked is one that the operator does not run.
	IsElsewhere bool
	// Why is said in the log when it is done.
	Why string
}

// note counts and logs a request that was made.
func (r Request) note(ctx context.Context) {
	Requests.WithLabelValues(string(r.What)).Inc()
	if r.Why != "" {
		log.FromContext(ctx).Info("request made of etcd", "why", r.Why)
	}
}

// notNow are the answers that say that something is otherwise than the request was decided for, or that etcd
// needs a moment: it is looked at again soon.
var notNow = []error{
	loop.ErrNotNow, members.ErrMemberExists, members.ErrMemberNotFound, members.ErrTooManyLearners, members.ErrLearnerNotReady,
	members.ErrNotLearner, members.ErrUnhealthy, members.ErrNotLeader, members.ErrNoDowngrade,
}

// CarryOut makes a request: the only place where one is. One that may take minutes it only begins.
func (a *Asker) CarryOut(ctx context.Context, ec types.NamespacedName, r Request) error {
	if r.What == members.Compact || r.What == members.Defragment {
		return a.begin(ctx, ec, r)
	}
	client := a.clientFor(ec, r.IsElsewhere)
	err := mayBeSent(ctx, client, r.Request)
	if err == nil {
		err = client.Send(ctx, r.Request)
	}
	switch {
	case slices.ContainsFunc(notNow, func(is error) bool { return errors.Is(err, is) }):
		return loop.ErrNotNow
	case r.What == members.DropHistory && errors.Is(err, members.ErrCompacted): // another client was first
		if a.noteCompacted(ec, r.Revision) {
			return loop.ErrNotNow
		}
	case err != nil:
		return err
	}
	if r.What == members.Rewrite {
		a.noteRewritten(ec, r.ID)
	}
	if r.What == members.DropHistory {
		a.noteDropped(ec)
	}
	r.note(ctx)
	return nil
}

// mayBeSent makes sure that the members are those that a request was decided for, and that no downgrade keeps it
// from being sent: while one is enabled, etcd takes a member without data only if the cluster's version is one
// above its own (allowedVersionRange in its source), and by then the cluster has the lower one. Etcd ends a
// downgrade by itself once all members answer, which one that cannot join does not. What is under way goes on as
// in an upgrade that is reverted: the cluster keeps the lower version while a member has it, and if none has,
// the downgrade is enabled again.
func mayBeSent(ctx context.Context, c members.Client, r members.Request) error {
	if len(r.Listed) > 0 {
		if list, err := c.List(ctx, r.At); err != nil {
			return err
		} else if !slices.Equal(r.Listed, members.IDs(list.Members)) {
			return loop.ErrNotNow // somebody else has changed it
		}
	}
	if !r.NoDowngrade {
		return nil
	}
	err := c.Send(ctx, members.Request{What: members.Downgrade, At: r.At})
	switch {
	case err == nil:
		log.FromContext(ctx).Info("downgrade canceled, so that a member can join")
		return loop.ErrNotNow
	case errors.Is(err, members.ErrNoDowngrade), errors.Is(err, members.ErrUnsupported):
		return nil
	}
	return err
}
