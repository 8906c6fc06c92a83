package model

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/fairlead/operators/etcd/members"
)

// stage is where a script of requests is played: on the model, or on real members.
type stage struct {
	client members.Client
	as     func(members.User) members.Client
	on     func(name string) members.Endpoint
	url    func(name string) string
	kill   func(name string)
	pass   func(time.Duration)
}

func (s stage) add(at, name string, learner bool) error {
	return s.client.Send(context.Background(), members.Request{What: members.Add, At: s.on(at), PeerURLs: []string{s.url(name)}, Learner: learner})
}

func (s stage) id(name string) members.ID {
	list, _ := s.client.List(context.Background(), s.on("a")) // an ID of 0 is nobody's
	for _, m := range list.Members {
		if len(m.PeerURLs) > 0 && m.PeerURLs[0] == s.url(name) {
			return m.ID
		}
	}
	return 0
}

func (s stage) enableAuth(ctx context.Context) error {
	return s.client.Send(ctx, members.Request{What: members.EnableAuth, At: s.on("a")})
}

var root = members.User{Name: members.Root, Password: "secret"}

// requests are scripts for clusters of some members that have run for ten seconds, with what they
// end with.
var requests = map[string]struct {
	names string
	do    func(context.Context, stage) error
	want  error
}{
	"a voter with all alive": {"abc", func(_ context.Context, s stage) error { return s.add("a", "d", false) }, nil},
	"a voter with one dead": {"abc", func(_ context.Context, s stage) error {
		s.kill("c")
		s.pass(2 * time.Second)
		return s.add("a", "d", false)
	}, members.ErrUnhealthy},
	"a learner with one dead": {"abc", func(_ context.Context, s stage) error {
		s.kill("c")
		s.pass(2 * time.Second)
		return s.add("a", "d", true)
	}, members.ErrUnhealthy},
	"a second learner": {"a", func(_ context.Context, s stage) error {
		return errors.Join(s.add("a", "d", true), s.add("a", "e", true))
	}, members.ErrTooManyLearners},
	"the same URL again": {"a", func(_ context.Context, s stage) error { return s.add("a", "a", true) }, members.ErrMemberExists},
	"promote one not started": {"a", func(ctx context.Context, s stage) error {
		_ = s.add("a", "d", true)
		return s.client.Send(ctx, members.Request{What: members.Promote, At: s.on("a"), ID: s.id("d")})
	}, members.ErrLearnerNotReady},
	"promote a voter": {"abc", func(ctx context.Context, s stage) error {
		return s.client.Send(ctx, members.Request{What: members.Promote, At: s.on("a"), ID: s.id("b")})
	}, members.ErrNotLearner},
	"remove one dead": {"abc", func(ctx context.Context, s stage) error {
		s.kill("c")
		s.pass(2 * time.Second)
		return s.client.Send(ctx, members.Request{What: members.Remove, At: s.on("a"), ID: s.id("c")})
	}, nil},
	"remove one alive, one dead": {"abc", func(ctx context.Context, s stage) error {
		s.kill("c")
		s.pass(2 * time.Second)
		return s.client.Send(ctx, members.Request{What: members.Remove, At: s.on("a"), ID: s.id("b")})
	}, members.ErrUnhealthy},
	"remove nobody": {"abc", func(ctx context.Context, s stage) error {
		return s.client.Send(ctx, members.Request{What: members.Remove, At: s.on("a"), ID: 7})
	}, members.ErrMemberNotFound},
	"downgrade by two": {"abc", func(ctx context.Context, s stage) error {
		return s.client.Send(ctx, members.Request{What: members.Downgrade, At: s.on("a"), Version: "3.4"})
	}, members.ErrDowngradeRefused},
	"downgrade by one": {"abc", func(ctx context.Context, s stage) error {
		return s.client.Send(ctx, members.Request{What: members.Downgrade, At: s.on("a"), Version: "3.5"})
	}, nil},
	"cancel without a downgrade": {"abc", func(ctx context.Context, s stage) error {
		return s.client.Send(ctx, members.Request{What: members.Downgrade, At: s.on("a")})
	}, members.ErrNoDowngrade},
	"authentication, enabled twice": {"abc", func(ctx context.Context, s stage) error {
		off := s.client.LogIn(ctx, s.on("a"))
		enabled := errors.Join(s.enableAuth(ctx), s.enableAuth(ctx), s.client.LogIn(ctx, s.on("b")))
		_, nobody := s.as(members.User{}).Status(ctx, s.on("b"))
		_, other := s.as(members.User{Name: members.Root, Password: "other"}).Status(ctx, s.on("b"))
		if !errors.Is(off, members.ErrAuthOff) || !errors.Is(nobody, members.ErrAuth) || errors.Is(nobody, members.ErrPassword) || !errors.Is(other, members.ErrPassword) {
			return fmt.Errorf("before it is on: %w; nobody: %w; another password: %w", off, nobody, other)
		}
		return errors.Join(enabled, s.client.Send(ctx, members.Request{What: members.SetPassword, At: s.on("a")}), s.add("b", "d", true))
	}, nil},
	"a dead member": {"abc", func(ctx context.Context, s stage) error { s.kill("c"); return s.client.Serves(ctx, s.on("c")) }, members.ErrUnreachable},
	"reads with one of three dead": {"abc", func(ctx context.Context, s stage) error {
		s.kill("c")
		s.pass(3 * time.Second)
		return s.client.Serves(ctx, s.on("a"))
	}, nil},
}

func TestRequests(t *testing.T) {
	for name, tc := range requests {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, tc.names)
			err := tc.do(context.Background(), stage{
				client: p.client, as: p.as, on: on, kill: p.Kill, pass: p.pass,
				url: func(name string) string { return "http://" + name + ":2380" },
			})
			p.want("the model", err, tc.want)
		})
	}
}
