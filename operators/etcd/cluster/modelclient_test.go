package cluster

import (
	"context"
	"crypto/tls"

	"example.com/fairlead/operators/etcd/members"
)

type nodesKey struct{}

// routed is a client of whichever model the world of a request has.
type routed struct{}

func route(*tls.Config) (members.Client, error) { return routed{}, nil }

func to(ctx context.Context) members.Client {
	c, _ := ctx.Value(nodesKey{}).(*modelNodes).model.Connect(nil)
	return c
}

// requireOne ends the history if an operator makes two changes of the members at once.
func requireOne(ctx context.Context, changed members.ID) {
	n := ctx.Value(nodesKey{}).(*modelNodes)
	if !n.hasAccepted() {
		n.world.Fail(n.changesOne(changed))
	}
}

// changed has the nodes look again after a change that an operator has requested.
func changed(ctx context.Context, err error) error {
	ctx.Value(nodesKey{}).(*modelNodes).world.Changed()
	return err
}

func (routed) Status(ctx context.Context, at members.Endpoint) (members.Status, error) {
	s, err := to(ctx).Status(ctx, at)
	if err == nil && s.ID == s.Leader && s.ID != 0 {
		ctx.Value(nodesKey{}).(*modelNodes).noteLeader(at.Address)
	}
	return s, err
}
func (routed) List(ctx context.Context, at members.Endpoint) (members.List, error) {
	return to(ctx).List(ctx, at)
}
func (routed) Serves(ctx context.Context, at members.Endpoint) error { return to(ctx).Serves(ctx, at) }
func (routed) Add(ctx context.Context, at members.Endpoint, urls []string, learner bool) (members.Member, error) {
	requireOne(ctx, 0)
	m, err := to(ctx).Add(ctx, at, urls, learner)
	return m, changed(ctx, err)
}
func (routed) Promote(ctx context.Context, at members.Endpoint, id members.ID) error {
	return changed(ctx, to(ctx).Promote(ctx, at, id))
}
func (routed) Remove(ctx context.Context, at members.Endpoint, id members.ID) error {
	requireOne(ctx, id)
	return changed(ctx, to(ctx).Remove(ctx, at, id))
}
func (routed) MoveLeader(ctx context.Context, at members.Endpoint, id members.ID) error {
	return changed(ctx, to(ctx).MoveLeader(ctx, at, id))
}
func (routed) Compact(ctx context.Context, at members.Endpoint, revision int64) error {
	return changed(ctx, to(ctx).Compact(ctx, at, revision))
}
func (routed) Defragment(ctx context.Context, at members.Endpoint) error {
	return changed(ctx, to(ctx).Defragment(ctx, at))
}
func (routed) Disarm(ctx context.Context, at members.Endpoint, alarm members.Alarm) error {
	return changed(ctx, to(ctx).Disarm(ctx, at, alarm))
}
func (routed) Downgrade(ctx context.Context, at members.Endpoint, version string) error {
	return changed(ctx, to(ctx).Downgrade(ctx, at, version))
}
func (routed) Close() error { return nil }
