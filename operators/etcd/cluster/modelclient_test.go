package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/model"
)

type nodesKey struct{}

// routed is a client of whichever model the world of a request has.
type routed struct {
	config *tls.Config
	as     members.User
}

func route(config *tls.Config, as members.User) (members.Client, error) {
	return routed{config, as}, nil
}

func (r routed) to(ctx context.Context) members.Client {
	c, _ := ctx.Value(nodesKey{}).(*modelNodes).model.Connect(r.config, r.as)
	return c
}

// requireOne ends the history if an operator makes two changes of the members at once.
func requireOne(ctx context.Context, changed members.ID) {
	n := ctx.Value(nodesKey{}).(*modelNodes)
	if !n.hasAccepted() {
		n.world.Fail(n.changesOne(changed))
	}
}

func (c routed) Status(ctx context.Context, at members.Endpoint) (members.Status, error) {
	s, err := c.to(ctx).Status(ctx, at)
	if err == nil && s.ID == s.Leader && s.ID != 0 {
		ctx.Value(nodesKey{}).(*modelNodes).noteLeader(at.Address)
	}
	return s, err
}
func (c routed) List(ctx context.Context, at members.Endpoint) (members.List, error) {
	return c.to(ctx).List(ctx, at)
}
func (c routed) Hash(ctx context.Context, at members.Endpoint, revision int64, patience time.Duration) (members.Hash, error) {
	return c.to(ctx).Hash(ctx, at, revision, patience)
}
func (c routed) Serves(ctx context.Context, at members.Endpoint) error {
	return c.to(ctx).Serves(ctx, at)
}
func (c routed) LogIn(ctx context.Context, at members.Endpoint) error {
	return c.to(ctx).LogIn(ctx, at)
}
func (c routed) Send(ctx context.Context, r members.Request) error {
	if r.What == members.Add || r.What == members.Remove {
		requireOne(ctx, r.ID)
	}
	if n := ctx.Value(nodesKey{}).(*modelNodes); r.What == members.Remove {
		n.world.Fail(n.keepsVoters(r.ID))
	}
	err := c.to(ctx).Send(ctx, r)
	if is, ok := errors.AsType[model.PendingError](err); ok {
		err = await(ctx, is, r.Patience)
	}
	ctx.Value(nodesKey{}).(*modelNodes).world.Changed() // the nodes look again
	return err
}

// await is the answer to a request that takes its time, or that there was none in time.
func await(ctx context.Context, request model.PendingError, patience time.Duration) error {
	const look = 5 * time.Second
	for waited := time.Duration(0); ; waited += look {
		if isOver, err := request.IsOver(); isOver {
			return err
		}
		if waited >= patience || !ctx.Value(nodesKey{}).(*modelNodes).world.Sleep(look) {
			return model.ErrNoAnswer
		}
	}
}

func (routed) Close() error { return nil }
