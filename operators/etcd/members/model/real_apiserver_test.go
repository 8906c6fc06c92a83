//go:build apiserver

package model

import (
	"strings"
	"testing"
	"time"

	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/etcdtest"
)

// TestRealStarts has real members exit with the texts that the model gives.
func TestRealStarts(t *testing.T) {
	cases := map[string]struct {
		change func(c, d *etcdtest.Member, all []*etcdtest.Member) *etcdtest.Member
		want   string
	}{
		"an empty disk with new": {func(c, _ *etcdtest.Member, _ []*etcdtest.Member) *etcdtest.Member { return c }, "already been bootstrapped"},
		"an empty disk with existing": {func(c, _ *etcdtest.Member, all []*etcdtest.Member) *etcdtest.Member {
			c.Env = []string{"ETCD_INITIAL_CLUSTER=" + etcdtest.InitialCluster(all...), "ETCD_INITIAL_CLUSTER_STATE=existing"}
			return c
		}, "out of range"},
		"a list that is not the cluster's": {func(_, d *etcdtest.Member, all []*etcdtest.Member) *etcdtest.Member {
			d.Env = []string{"ETCD_INITIAL_CLUSTER=" + etcdtest.InitialCluster(all[0], d), "ETCD_INITIAL_CLUSTER_STATE=existing"}
			return d
		}, "member count is unequal"},
		"an older binary": {func(_, _ *etcdtest.Member, all []*etcdtest.Member) *etcdtest.Member {
			all[1].Stop(t)
			all[1].Version = "v3.5.35"
			return all[1]
		}, "invalid downgrade"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := etcdtest.NewCluster(t, 3, "v3.6.16")
			for _, m := range all {
				m.Start(t)
			}
			etcdtest.Eventually(t, 20*time.Second, "all are published", func() error {
				for _, m := range all {
					if !strings.Contains(m.Log(), "published local member to cluster") || !strings.Contains(m.Log(), "updated cluster version") && !strings.Contains(m.Log(), "set initial cluster version") {
						return ErrNoAnswer
					}
				}
				return nil
			})
			time.Sleep(time.Second)
			followerLast(t, all)
			all[2].Kill(t)
			all[2].Wipe(t)
			m := tc.change(all[2], etcdtest.New(t, "d", "v3.6.16"), all)
			m.Start(t)
			m.Ends(t, 20*time.Second)
			if !strings.Contains(m.Log(), tc.want) {
				t.Errorf("the log has no %q", tc.want)
			}
		})
	}
}

// followerLast puts a member last that does not lead. A leader remembers what a follower has had, which
// is how it notices that there is nothing of it any more. A new leader does not, and takes a member
// back that has forgotten everything: that is why the operator seals members.
func followerLast(t *testing.T, all []*etcdtest.Member) {
	t.Helper()
	c, err := members.Dial(nil, members.User{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	status, err := c.Status(t.Context(), members.Endpoint{Address: all[2].Client})
	if err != nil {
		t.Fatal(err)
	}
	if status.ID == status.Leader {
		all[1], all[2] = all[2], all[1]
	}
}
