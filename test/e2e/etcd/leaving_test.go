//go:build e2e

package etcd

import (
	"slices"
	"testing"

	"example.com/fairlead/test/e2e"
)

// TestLeaveEtcd: without its EtcdCluster the members run on, and another EtcdCluster takes them in again.
func TestLeaveEtcd(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 3", "version: "+current, volumes)
	e.put("/key", "kept")
	members := e.members()
	e2e.LeavesByGuide(t, e.namespace, "From an EtcdCluster", "pods,pvc,services,poddisruptionbudgets", 9)
	e.wantValue("/key", "kept")
	e.put("/key", "written alone")
	before := e.pods()
	e2e.RunGuide(t, e.namespace, e2e.GuideCommands(t, "moving/leaving.md", "Come back with an EtcdCluster", 1)[0])
	e.ready()
	if after := e.members(); !slices.Equal(members, after) {
		t.Errorf("the members were %v and are %v", members, after)
	}
	for name, pod := range e.pods() {
		if before[name].UID != pod.UID || pod.Status.ContainerStatuses[0].RestartCount > 0 {
			t.Errorf("pod %s is not as it was", name)
		}
	}
	e.wantValue("/key", "written alone")
}
