//go:build apiserver

package model

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/etcdtest"
)

// TestRealRequests plays the scripts of TestRequests on real members.
func TestRealRequests(t *testing.T) {
	for name, tc := range requests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := map[string]*etcdtest.Member{}
			for _, m := range etcdtest.NewCluster(t, len(tc.names), "v3.6.16") {
				all[m.Name] = m
				m.Start(t)
			}
			for _, n := range []string{"d", "e"} {
				all[n] = etcdtest.New(t, n, "v3.6.16")
			}
			time.Sleep(10 * time.Second)
			as := func(who members.User) members.Client {
				client := members.DialDirect(nil, who)
				t.Cleanup(func() { _ = client.Close() })
				return client
			}
			err := tc.do(context.Background(), stage{
				client: as(root), as: as, pass: time.Sleep,
				on:   func(name string) members.Endpoint { return members.Endpoint{Address: all[name].Client} },
				url:  func(name string) string { return all[name].PeerURL() },
				kill: func(name string) { all[name].Kill(t) },
			})
			if !errors.Is(err, tc.want) {
				t.Errorf("%v, not %v", err, tc.want)
			}
		})
	}
}
