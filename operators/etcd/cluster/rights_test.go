package cluster

import (
	"testing"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit/standalone"
)

func TestRights(t *testing.T) {
	t.Chdir("..") // where the role is
	// Generated certificates are in Secrets that are no children: the cache has no private keys.
	others := loop.Rights{"secrets": {"create", "get", "list", "patch", "watch"}}
	standalone.CheckRights(t, run.Operator{Name: name, AddToScheme: v1beta2.AddToScheme}, others, kind)
}
