//go:build e2e

package nodes

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/internal/testkit/stall"
	"example.com/fairlead/test/e2e"
)

// TestDrainUnnoticed drains a node while another node's etcd stands still, which leads, and whose node is cordoned: as long as
// Kubernetes has not noticed that, and after, no member that serves is evicted, and writes go on.
func TestDrainUnnoticed(t *testing.T) {
	stall.Judge(t, "the drain", drainUnnoticed, nil)
}

func drainUnnoticed(t testing.TB) {
	nodes := threeNodes(t)
	managerTo(t, nodes)
	namespace := e2e.NewNamespace(t)
	e2e.Apply(t, namespace, objects)
	ready(t, namespace)
	drained, still := nodes[1], nodes[2]
	leads(t, namespace, still)
	on := func(node string) string {
		return e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", "etcd_cluster=db", "-o", `jsonpath={.items[?(@.spec.nodeName=="`+node+`")].metadata.name}`)
	}
	good, hanging := on(drained), on(still)
	// Clients connect to the third member: to find out that another one does not answer takes them longer than it takes etcd.
	e2e.Kubectl(t, "label", "pod", "-n", namespace, on(firstNode), "outside=true")
	e2e.Kubectl(t, "patch", "service", "outside", "-n", namespace, "-p", `{"spec":{"selector":{"outside":"true"}}}`)
	before := ids(t, namespace)
	fewest, writes := countMembers(t, namespace), write(t, namespace)
	time.Sleep(5 * time.Second) // undisturbed
	for _, node := range []string{drained, still} {
		t.Cleanup(func() { e2e.Kubectl(t, "uncordon", node) })
	}
	began := time.Now()
	e2e.Signal(t, syscall.SIGSTOP, hanging)
	e2e.Kubectl(t, "cordon", still)
	drain := func(timeout string) (string, error) {
		return e2e.TryKubectl("", "drain", drained, "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=etcd_cluster=db", timeout)
	}
	// Kubernetes counts the pod as ready for 10 s, and as unready after that.
	out, err := drain("--timeout=40s")
	if err == nil || !strings.Contains(out, "Cannot evict pod as it would violate the pod's disruption budget") {
		t.Errorf("while %s stands still, the drain says (%v):\n%s", hanging, err, out)
	}
	if there := on(drained); there != good || ids(t, namespace) != before {
		t.Errorf("%s was on the node that is drained, and now %q is; the members are\n%s", good, there, ids(t, namespace))
	}
	e2e.Signal(t, syscall.SIGCONT, hanging)
	pace.Eventually(t, time.Minute, func() error { // the budget lets none of three go again
		least := e2e.Kubectl(t, "get", "pdb/db", "-n", namespace, "-o", "jsonpath={.spec.minAvailable}")
		if least != "3" && least != "4" {
			return fmt.Errorf("minAvailable is %s", least)
		}
		return nil
	})
	if out, err := drain(e2e.Patience); err != nil {
		t.Errorf("when all serve again, the drain says (%v):\n%s", err, out)
	}
	ended := time.Now()
	ready(t, namespace)
	voters, serving := fewest()
	t.Logf("there were at least %d voting members, and at least %d ready pods", voters, serving)
	if voters < 3 || serving < 2 {
		t.Error("want at least 3 voting members, and 2 ready pods")
	}
	gap := checked(t, writes).Gap(began, ended)
	t.Logf("drained after %v: longest gap of writes %v", ended.Sub(began).Round(time.Second), gap.Round(time.Millisecond))
	if limit := pace.Scale(servesWithin); gap > limit {
		t.Errorf("no write was acknowledged for %v, want at most %v", gap, limit)
	}
}
