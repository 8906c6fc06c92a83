package etcd

import (
	"testing"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit/standalone"
	"example.com/fairlead/operators/etcd/backup"
	"example.com/fairlead/operators/etcd/cluster"
	"example.com/fairlead/operators/etcd/restore"
)

func TestRights(t *testing.T) {
	// Generated certificates are in Secrets that are no children: the cache has no private keys.
	others := loop.Rights{"secrets": {"create", "get", "list", "patch", "watch"}}
	standalone.CheckRights(t, Operator, others, cluster.Static, backup.Static, restore.Static)
}
