//go:build apiserver

package members_test

import (
	"testing"
	"time"

	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/etcdtest"
)

// TestRealUsers: with authentication on, a member tells nothing to who has no certificate and is no user, and all to root:
// also members that have started anew, or are learners, and know none of the tokens.
func TestRealUsers(t *testing.T) {
	for _, v := range []string{version, "v3.5.35", "v3.7.3"} {
		t.Run(v, func(t *testing.T) { t.Parallel(); usersOf(t, v) })
	}
}

func usersOf(t *testing.T, v string) {
	ctx, nobody := t.Context(), dialed(t)
	root := members.DialDirect(nil, members.User{Name: members.Root, Password: "secret"})
	other := members.DialDirect(nil, members.User{Name: members.Root, Password: "other"})
	t.Cleanup(func() { _, _ = root.Close(), other.Close() })
	all := etcdtest.NewCluster(t, 3, v)
	for _, m := range all {
		m.Start(t)
	}
	for _, m := range all {
		etcdtest.Eventually(t, time.Minute, "serves", func() error { return root.Serves(ctx, at(m)) })
	}
	wants(t, "a user before authentication is on", root.LogIn(ctx, at(all[0])), members.ErrAuthOff)
	for range 2 {
		if err := root.Send(ctx, members.Request{What: members.EnableAuth, At: at(all[0])}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := nobody.Status(ctx, at(all[0]))
	wants(t, "nobody's status with "+v, err, members.ErrAuth)
	_, err = nobody.List(ctx, at(all[0]))
	wants(t, "nobody's list with "+v, err, members.ErrAuth)
	wants(t, "another password with "+v, other.LogIn(ctx, at(all[0])), members.ErrPassword)
	wants(t, "another password's request with "+v, other.Send(ctx, members.Request{What: members.SetPassword, At: at(all[0])}), members.ErrPassword)
	knowsRoot(t, root, all...)

	all[1].Stop(t)
	all[1].Start(t)
	etcdtest.Eventually(t, time.Minute, "serves again", func() error { return root.Serves(ctx, at(all[1])) })
	knowsRoot(t, root, all...)
	if err := root.Send(ctx, members.Request{What: members.Defragment, At: at(all[1])}); err != nil {
		t.Errorf("a defragmentation with %s: %v", v, err)
	}
	joinsAsLearner(t, root, all, v)

	if err := root.Send(ctx, members.Request{What: members.SetPassword, At: at(all[2])}); err != nil {
		t.Errorf("the password with %s: %v", v, err)
	}
	knowsRoot(t, root, all...)
}

// knowsRoot requires that all members tell the client all.
func knowsRoot(t *testing.T, c members.Client, all ...*etcdtest.Member) {
	t.Helper()
	for _, m := range all {
		s, err := c.Status(t.Context(), at(m))
		if list, listed := c.List(t.Context(), at(m)); err != nil || listed != nil || s.ID != list.By {
			t.Errorf("%s of %s tells %+v, %+v (%v, %v)", m.Name, m.Version, s, list, err, listed)
		}
	}
}

// joinsAsLearner has a learner join that starts anew, and be promoted.
func joinsAsLearner(t *testing.T, c members.Client, all []*etcdtest.Member, v string) {
	t.Helper()
	ctx, extra := t.Context(), etcdtest.New(t, "x", v)
	etcdtest.Eventually(t, 30*time.Second, "add a learner", func() error {
		return c.Send(ctx, members.Request{What: members.Add, At: at(all[0]), PeerURLs: []string{extra.PeerURL()}, Learner: true})
	})
	extra.Env = []string{"ETCD_INITIAL_CLUSTER=" + etcdtest.InitialCluster(append(all, extra)...), "ETCD_INITIAL_CLUSTER_STATE=existing"}
	var learner members.Status
	alone := members.DialDirect(nil, members.User{Name: members.Root, Password: "secret"})
	t.Cleanup(func() { _ = alone.Close() })
	for start := range 2 {
		if start == 1 {
			all[1].Stop(t) // which gave the last token
		}
		extra.Start(t)
		etcdtest.Eventually(t, time.Minute, "the learner's status", func() (err error) {
			learner, err = c.Status(ctx, at(extra))
			return err
		})
		_, err := alone.Status(ctx, at(extra))
		wants(t, "a learner's status for who has met no other member, with "+v, err, members.ErrIsLearner)
		extra.Stop(t)
	}
	all[1].Start(t)
	extra.Start(t)
	etcdtest.Eventually(t, time.Minute, "promote", func() error {
		return c.Send(ctx, members.Request{What: members.Promote, At: at(all[0]), ID: learner.ID})
	})
	for _, m := range append(all, extra) {
		etcdtest.Eventually(t, time.Minute, "serves", func() error { return c.Serves(ctx, at(m)) })
	}
	knowsRoot(t, c, append(all, extra)...)
}
