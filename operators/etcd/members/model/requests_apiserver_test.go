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
			for _, n := range []string{"d", "e"} {
				all[n] = etcdtest.New(t, n, "v3.6.16")
			}
			first := etcdtest.NewCluster(t, len(tc.names), "v3.6.16")
			for _, m := range first {
				all[m.Name] = m
			}
			for _, m := range all {
				m.Flags = []string{"--unsafe-no-fsync"} // so many members at once are too much for some disks
			}
			for _, m := range first {
				m.Start(t)
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
