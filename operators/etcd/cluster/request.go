package cluster

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
)

// This file is about requests to members that change something. decide says which one is to be made, as a
// value: at most one in a reconcile.

// request is a request to a member, with what is known when it has been made.
type request struct {
	members.Request
	// why is said in the log when it is done.
	why string
}

// note counts and logs a request that was made.
func (r request) note(ctx context.Context) {
	memberChanges.WithLabelValues(string(r.What)).Inc()
	if r.why != "" {
		log.FromContext(ctx).Info(r.why)
	}
}

// ask requests a change from a member, after all other writes. What it returns may be changed.
func (p *plan) ask(why string, r members.Request) *request {
	p.request = &request{Request: r, why: why}
	return p.request
}

// askLeader requests a change from the leader; nil if that does not answer.
func (p *plan) askLeader(ec *v1beta2.EtcdCluster, why string, r members.Request) *request {
	leader := p.view.leading()
	if leader == nil {
		return nil
	}
	r.At = objects.EndpointOf(ec, leader.pod)
	return p.ask(why, r)
}

// decide is the next step, with its request as a write of the loop.
func (a *asker) decide(ec *v1beta2.EtcdCluster, seen observation) (*plan, error) {
	next := decide(ec, seen)
	a.noteWaiting(objects.Key(ec), next.waiting)
	a.noteDecided(ec, next.memory.Maintenance)
	if next.request != nil {
		r, of := *next.request, objects.Key(ec)
		carryOut := func(ctx context.Context, _ loop.Caller) error { return a.carryOut(ctx, of, r) }
		next.Do(loop.Call{Part: "etcd " + string(r.What), IfCurrent: true, Do: carryOut})
	}
	return next, nil
}

// notNow are the answers that say that something is otherwise than the request was decided for, or that etcd
// needs a moment: it is looked at again soon.
var notNow = []error{
	loop.ErrNotNow, members.ErrMemberExists, members.ErrMemberNotFound, members.ErrTooManyLearners, members.ErrLearnerNotReady,
	members.ErrNotLearner, members.ErrUnhealthy, members.ErrNotLeader, members.ErrNoDowngrade,
}

// carryOut makes a request: the only place where one is. One that may take minutes it only begins.
func (a *asker) carryOut(ctx context.Context, ec types.NamespacedName, r request) error {
	if r.What == members.Compact || r.What == members.Defragment {
		return a.begin(ctx, ec, r)
	}
	client := a.known(ec).client
	err := mayBeSent(ctx, client, r.Request)
	if err == nil {
		err = client.Send(ctx, r.Request)
	}
	switch {
	case slices.ContainsFunc(notNow, func(is error) bool { return errors.Is(err, is) }):
		return loop.ErrNotNow
	case err != nil:
		return err
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
