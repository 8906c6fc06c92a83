package model

import (
	"context"

	"example.com/fairlead/operators/etcd/members"
)

// isAdmitted says whether a process answers a client. One that has started anew knows nobody until a quorum says who it is.
func (c client) isAdmitted(p *Process) error {
	s := p.state()
	switch {
	case !s.auth, c.isRoot:
		return nil
	case c.as == members.User{}:
		return members.ErrAuth
	case c.as.Name != members.Root || c.as.Password != s.root:
		return members.ErrPassword
	case p.leader == nil && !p.hasToken:
		return ErrNoAnswer
	}
	p.hasToken = true
	return nil
}

// LogIn is answered by voters, with a quorum.
func (c client) LogIn(_ context.Context, at members.Endpoint) error {
	p, err := c.w.at(at.Address)
	switch {
	case err != nil:
		return err
	case p.isLearner():
		return members.ErrIsLearner
	case p.leader == nil:
		return members.ErrNoLeader
	case !p.state().auth:
		return members.ErrAuthOff
	}
	return client{c.w, c.as, false}.isAdmitted(p)
}

// enableAuth makes the requests that the client of a real etcd makes.
func (c client) enableAuth(ctx context.Context, at members.Endpoint) error {
	var before state
	if err := c.auth(ctx, "add", at, func(s *state) { before, s.root = *s, c.as.Password }); err != nil {
		return err
	}
	if before.root != "" {
		if err := c.Send(ctx, members.Request{What: members.SetPassword, At: at}); err != nil {
			return err
		}
	}
	if err := c.auth(ctx, "grant", at, func(s *state) { s.isRoot = true }); err != nil {
		return err
	}
	return c.auth(ctx, "enable", at, func(s *state) { s.auth = s.isRoot })
}

func (w *World) setPassword(p *Process, to string) error {
	next := p.leader.state().clone()
	next.root = to
	return w.commit(p, next)
}

func (c client) auth(ctx context.Context, verb string, at members.Endpoint, change func(*state)) error {
	return c.do(ctx, verb, at, true, func(p *Process) error {
		next := p.leader.state().clone()
		change(next)
		return c.w.commit(p, next)
	})
}
