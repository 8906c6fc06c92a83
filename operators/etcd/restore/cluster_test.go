package restore

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
)

// TestWhoseItIs: an EtcdRestore is of the first EtcdCluster of the name that it sees, and of no other.
func TestWhoseItIs(t *testing.T) {
	there := aCluster(func(*v1beta2.EtcdCluster) {})
	for name, tc := range map[string]struct {
		restore *v1beta2.EtcdRestore
		cluster *v1beta2.EtcdCluster
		want    types.UID
	}{
		"there is none":             {aRestore(), nil, ""},
		"the first":                 {aRestore(), there, "uid-of-example"},
		"one that is being gone":    {aRestore(), aCluster(ending), ""},
		"under way of before":       {aRestore(is(v1beta2.RestoreVerifying, "")), aCluster(restoring(v1beta2.RestoreVerifying, "")), "uid-of-example"},
		"it is paused":              {aRestore(), aCluster(func(ec *v1beta2.EtcdCluster) { ec.Spec.Paused = true }), "uid-of-example"},
		"another has its name":      {aRestore(is(v1beta2.RestoreWaiting, "another")), there, "another"},
		"none has its name":         {aRestore(is(v1beta2.RestoreWaiting, "another")), nil, "another"},
		"it was done by one before": {aRestore(done), nil, ""},
	} {
		if got := summarize(tc.restore, observation{cluster: tc.cluster}).EtcdClusterUID; got != tc.want {
			t.Errorf("%s: it is of %q, want %q", name, got, tc.want)
		}
	}
}
