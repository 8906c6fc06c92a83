//go:build e2e

package nodes

import (
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestDrainOfLocalVolume drains a node that has a member's volume, and no other node has it: the member waits for the node. It
// comes back with the node, or is replaced when its data is said to be lost.
func TestDrainOfLocalVolume(t *testing.T) {
	nodes := threeNodes(t)
	managerTo(t, nodes)
	namespace := e2e.NewNamespace(t)
	e2e.Apply(t, namespace, withVolumes("standard"))
	ready(t, namespace)
	writes := write(t, namespace)
	node, another := nodes[1], nodes[2]
	before := ids(t, namespace)
	member := drainMember(t, namespace, node)
	out, err := e2e.TryKubectl("", "drain", another, "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=etcd_cluster=db", "--timeout=10s")
	e2e.Kubectl(t, "uncordon", another)
	t.Logf("meanwhile, a drain of %s says:\n%s", another, out)
	if err == nil || !strings.Contains(out, "Cannot evict pod as it would violate the pod's disruption budget") {
		t.Errorf("a second member may go while %s waits (%v)", member, err)
	}
	e2e.Kubectl(t, "uncordon", node)
	ready(t, namespace)
	if after := ids(t, namespace); after != before {
		t.Errorf("the members were\n%s\nand are\n%s", before, after)
	}

	member = drainMember(t, namespace, node)
	began := time.Now()
	e2e.Kubectl(t, "delete", "-n", namespace, "--wait=false", "pvc/"+member, "pod/"+member)
	pace.Eventually(t, time.Minute, func() error {
		_, err := e2e.TryKubectl("", "wait", "-n", namespace, "--timeout=1s", "--for=delete", "pod/"+member)
		return err
	})
	ready(t, namespace)
	t.Logf("it was replaced in %v:\n%s", time.Since(began).Round(time.Second), members(t, namespace))
	e2e.Kubectl(t, "uncordon", node)
	checked(t, writes)
}

// drainMember drains a node of the one member that it has, which then waits for the node, and returns its name.
func drainMember(t testing.TB, namespace, node string) string {
	t.Helper()
	member := e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", "etcd_cluster=db", "-o", `jsonpath={.items[?(@.spec.nodeName=="`+node+`")].metadata.name}`)
	t.Cleanup(func() { e2e.Kubectl(t, "uncordon", node) })
	e2e.Kubectl(t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", e2e.Patience)
	pace.Eventually(t, time.Minute, func() error {
		_, err := e2e.TryKubectl("", "wait", "-n", namespace, "--timeout=1s", "--for=condition=PodScheduled=false", "pod/"+member)
		return err
	})
	time.Sleep(10 * time.Second) // it waits, and is not replaced
	t.Logf("Ready says: %s", e2e.Kubectl(t, "get", "etcd/db", "-n", namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`))
	return member
}
