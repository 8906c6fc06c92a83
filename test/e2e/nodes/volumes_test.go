//go:build e2e

package nodes

import (
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestDrainWithoutSight drains a node that has a member's volume, and no other node has it, while the manager may not see nodes:
// the member waits for the node. It comes back with the node, or is replaced when its data is said to be lost.
func TestDrainWithoutSight(t *testing.T) {
	nodes := threeNodes(t)
	const binding = "clusterrolebinding/fairlead-etcd-nodes-rolebinding"
	there := e2e.Kubectl(t, "get", binding, "-o", "json")
	e2e.Kubectl(t, "delete", binding)
	t.Cleanup(func() {
		e2e.Apply(t, "default", there)
		managerTo(t, nodes)
	})
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

// TestDrainWithoutRoom: no other node takes the member in place of the one that is to leave. The drain waits, and Ready says why.
// When the node is uncordoned, all is as it was.
func TestDrainWithoutRoom(t *testing.T) {
	nodes := threeNodes(t)
	managerTo(t, nodes)
	namespace := e2e.NewNamespace(t)
	e2e.Apply(t, namespace, strings.Replace(objects, "version: 3.6.16", "version: 3.6.16, pod: {antiAffinity: true}", 1))
	ready(t, namespace)
	before := ids(t, namespace)
	t.Cleanup(func() { e2e.Kubectl(t, "uncordon", nodes[1]) })
	out, err := e2e.TryKubectl("", "drain", nodes[1], "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=etcd_cluster=db", "--timeout=15s")
	if err == nil || !strings.Contains(out, "Cannot evict pod as it would violate the pod's disruption budget") {
		t.Errorf("the drain says (%v):\n%s", err, out)
	}
	said := e2e.Kubectl(t, "get", "etcd/db", "-n", namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
	t.Logf("Ready says: %s", said)
	if !strings.Contains(said, "its node "+nodes[1]+" is cordoned; member db-") || !strings.Contains(said, "its pod cannot be scheduled") {
		t.Error("which does not say what the drain waits for")
	}
	e2e.Kubectl(t, "uncordon", nodes[1])
	ready(t, namespace)
	if after := ids(t, namespace); after != before {
		t.Errorf("the members were\n%s\nand are\n%s", before, after)
	}
}
