//go:build e2e

package nodes

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

const (
	// servesWithin is how soon etcd takes writes again when one of three zones is off.
	servesWithin = 5 * time.Second
	// watched is for how long writes are watched after that.
	watched = 20 * time.Second
	// saidWithin is how soon a node that does not answer is reported: Kubernetes takes 50 s.
	saidWithin = 90 * time.Second
)

// TestZoneOff switches a zone of three off, which has one node, and on again.
func TestZoneOff(t *testing.T) {
	nodes := threeNodes(t)
	managerTo(t, nodes)
	namespace := e2e.NewNamespace(t)
	e2e.Apply(t, namespace, objects)
	ready(t, namespace)
	off := nodes[2]
	leads(t, namespace, off)
	writes := write(t, namespace)
	time.Sleep(5 * time.Second)
	began := time.Now()
	localcluster(t, "node", off, "off")
	time.Sleep(watched)
	report := checked(t, writes)
	gap := report.Gap(began, began.Add(watched))
	t.Logf("longest gap of writes: %v", gap.Round(time.Millisecond))
	if gap > pace.Scale(servesWithin) {
		t.Errorf("no write was acknowledged for %v, want at most %v", gap, servesWithin)
	}
	named(t, namespace, off, began)
	localcluster(t, "node", off, "on")
	ready(t, namespace)
	t.Logf("all is as requested %v after the power failed", time.Since(began).Round(time.Second))
}

// TestOutOfService says of a node that is off, and has a part of each object, that it will not come back, by a taint.
func TestOutOfService(t *testing.T) {
	nodes := threeNodes(t)
	managerTo(t, nodes)
	namespace, off := e2e.NewNamespace(t), nodes[2]
	e2e.Apply(t, namespace, objects+runOn(off))
	ready(t, namespace)
	runs(t, namespace, off)
	began := time.Now()
	localcluster(t, "node", off, "off")
	named(t, namespace, off, began)
	e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, "--for=jsonpath={.status.reason}=NodeNotResponding", "at/on-"+off)
	const taint = "node.kubernetes.io/out-of-service"
	began = time.Now()
	e2e.Kubectl(t, "taint", "node", off, taint+"=nodeshutdown:NoExecute")
	ready(t, namespace)
	e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, "--for=jsonpath={.status.phase}=FAILED", "at/on-"+off)
	t.Logf("all is as requested %v after the taint; the run: %s", time.Since(began).Round(time.Second),
		e2e.Kubectl(t, "get", "at/on-"+off, "-n", namespace, "-o", "jsonpath={.status.reason}, {.status.attempts}"))
	localcluster(t, "node", off, "on")
	e2e.Kubectl(t, "taint", "node", off, taint+"-")
}

// named waits until all kinds report a node that is off, and name it.
func named(t testing.TB, namespace, off string, since time.Time) {
	t.Helper()
	words := fmt.Sprintf("node %q has not answered since", off)
	for _, object := range []string{"memcached/cache", "webserver/web", "etcd/db"} {
		pace.Eventually(t, saidWithin-time.Since(since), func() error {
			said := e2e.Kubectl(t, "get", object, "-n", namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
			if !strings.Contains(said, words) {
				return fmt.Errorf("%s says %q", object, said)
			}
			return nil
		})
		t.Logf("%s names the node after %v", object, time.Since(since).Round(time.Second))
	}
}

// leads has the member on a node lead: to lose that one is the hard case.
func leads(t testing.TB, namespace, node string) {
	t.Helper()
	get := func(path string) string {
		return e2e.Kubectl(t, "get", "etcd/db", "-n", namespace, "-o", "jsonpath="+path)
	}
	leader := get("{.status.leader}")
	next := e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", "etcd_cluster=db", "-o", `jsonpath={.items[?(@.spec.nodeName=="`+node+`")].metadata.name}`)
	if leader == next {
		return
	}
	e2e.Kubectl(t, "exec", "-n", namespace, leader, "--", "etcdctl", "move-leader", get(`{.status.memberList[?(@.name=="`+next+`")].id}`))
}

// localcluster runs a command of the local cluster.
func localcluster(t testing.TB, command string, args ...string) {
	t.Helper()
	run(t, "bin/localcluster", append([]string{command, "--dir", os.Getenv("LOCALCLUSTER_DIR")}, args...)...)
}
