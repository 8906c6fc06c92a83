//go:build e2e

package nodes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/test/e2e"
)

// countMembers counts the EtcdCluster's voting members, as these have them, and its pods that are ready, five times a second.
// What it returns ends that, and returns the fewest of each.
func countMembers(t testing.TB, namespace string) func() (voters, serving int) {
	t.Helper()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{outside(t, namespace)}, Logger: zap.NewNop(), DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	voters, serving, counted := 3, 3, 0
	go func() {
		defer close(done)
		defer func() { _ = etcd.Close() }()
		for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
			var there corev1.PodList
			if err := c.List(ctx, &there, client.InNamespace(namespace), client.MatchingLabels{"etcd_cluster": "db"}); err == nil {
				serving = min(serving, len(slices.DeleteFunc(there.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || !pods.IsReady(&p) })))
			}
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			if list, err := etcd.MemberList(ctx); err == nil {
				counted++
				voters = min(voters, len(slices.DeleteFunc(list.Members, func(m *etcdserverpb.Member) bool { return m.IsLearner })))
			}
			cancel()
		}
	}()
	return func() (int, int) {
		stop()
		<-done
		if counted < 50 {
			t.Errorf("the members were counted only %d times", counted)
		}
		return voters, serving
	}
}

// members are those of etcd with their IDs, and their pods with how often each has been started.
func members(t testing.TB, namespace string) string {
	t.Helper()
	return ids(t, namespace) + "\n" + e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", "etcd_cluster=db", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`)
}

// ids are the members of etcd by their names.
func ids(t testing.TB, namespace string) string {
	t.Helper()
	return e2e.Kubectl(t, "get", "etcd/db", "-n", namespace, "-o", `jsonpath={range .status.memberList[*]}{.name} {.id}{"\n"}{end}`)
}

// TestScaleDownInZones: of five members in three zones those leave of which their zones have more than one.
func TestScaleDownInZones(t *testing.T) {
	threeNodes(t)
	namespace := e2e.NewNamespace(t)
	etcd := func(size string) string {
		t.Helper()
		e2e.Apply(t, namespace, "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: db}\nspec: {size: "+size+", version: 3.6.16}\n")
		e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, "--for=jsonpath={.status.size}="+size, "etcd/db")
		e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, "--for=condition=Ready", "etcd/db")
		return e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", "etcd_cluster=db", "-o", "jsonpath={.items[*].spec.nodeName}")
	}
	t.Logf("five members are on %s", etcd("5"))
	left := strings.Fields(etcd("3"))
	slices.Sort(left)
	if len(slices.Compact(slices.Clone(left))) != 3 {
		t.Errorf("the three that are left are on %v", left)
	}
}
