//go:build e2e

package etcd

import (
	"context"
	"fmt"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestEtcdThatCrashesIsEvicted: who drains a node does not wait for a member that serves nobody, and keeps its volume.
// It is not parallel: the operator would move the members of all other clusters off the cordoned node.
func TestEtcdThatCrashesIsEvicted(t *testing.T) {
	const crashing = `{"pod":{"etcdEnv":[{"name":"ETCD_ELECTION_TIMEOUT","value":"nonsense"}]}}`
	e := etcd{t, e2e.NewNamespace(t, restricted)}
	e.apply("size: 1", volumes)
	e.patch(crashing)
	e.crashes()
	e.evict()
	e.patch(`{"pod":{"etcdEnv":null}}`)
	e.ready()
	e.put("/key", "value")
	e.patch(crashing)
	e.crashes()
	e.evict()
	e.patch(`{"pod":{"etcdEnv":null}}`)
	e.ready()
	e.wantValue("/key", "value")
}

// crashes waits until a member's container has ended again and again, and its pod is not ready.
func (e etcd) crashes() {
	e.t.Helper()
	pace.Eventually(e.t, 2*time.Minute, func() error {
		for _, pod := range e.pods() {
			for _, c := range pod.Status.ContainerStatuses {
				if c.RestartCount > 0 && !c.Ready && pod.DeletionTimestamp == nil {
					return nil
				}
			}
		}
		return fmt.Errorf("no pod crashes: %s", e.kubectl("get", "pods"))
	})
}

// evict cordons the nodes of all pods and evicts these, as a drain does, and lets the nodes have pods again.
func (e etcd) evict() {
	e.t.Helper()
	for _, pod := range e.pods() {
		e2e.Kubectl(e.t, "cordon", pod.Spec.NodeName)
		defer e2e.Kubectl(e.t, "uncordon", pod.Spec.NodeName)
		pace.Eventually(e.t, time.Minute, func() error {
			return cluster.SubResource("eviction").Create(context.Background(), &pod, &policyv1.Eviction{})
		})
	}
}
