//go:build e2e

// Package nodes shows what happens when nodes are drained and lost. It needs a
// local cluster of three nodes in three zones, with one manager for all
// operators: `make nodes-test` makes it.
package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

var c client.Client

func TestMain(m *testing.M) { e2e.Main(m, &c) }

// firstNode has the control plane, and cannot be switched off.
const firstNode = "localcluster"

// threeNodes are the names of the nodes, the first one first.
func threeNodes(t testing.TB) []string {
	t.Helper()
	e2e.NeedsLocalCluster(t, "it has three nodes, which are switched off")
	nodes := strings.Fields(e2e.Kubectl(t, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
	slices.Sort(nodes)
	if len(nodes) != 3 || nodes[0] != firstNode {
		t.Fatalf("the nodes are %v: run make nodes-test", nodes)
	}
	return nodes
}

// managerTo moves the manager to the first node, if it is not there.
func managerTo(t testing.TB, nodes []string) {
	t.Helper()
	const namespace, deployment = "fairlead-system", "deployment/fairlead-controller-manager"
	for _, node := range nodes {
		if node != firstNode {
			e2e.Kubectl(t, "cordon", node)
		}
	}
	e2e.Kubectl(t, "rollout", "restart", "-n", namespace, deployment)
	e2e.Kubectl(t, "rollout", "status", "-n", namespace, e2e.Patience, deployment)
	for _, node := range nodes {
		e2e.Kubectl(t, "uncordon", node)
	}
	pace.Eventually(t, time.Minute, func() error {
		out, err := e2e.TryKubectl("", "get", "pods", "-n", namespace, "-o", "name", "--field-selector", "spec.nodeName!="+firstNode)
		if err == nil && strings.Contains(out, "pod/") {
			err = fmt.Errorf("elsewhere are %s", out)
		}
		return err
	})
}
