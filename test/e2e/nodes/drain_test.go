//go:build e2e

package nodes

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/internal/testkit/stall"
	"example.com/fairlead/test/e2e"
	"example.com/fairlead/test/e2e/etcd/load"
)

// objects are one or two of each kind, which spread over the nodes by themselves.
const objects = `
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: cache}
spec: {size: 3, identity: Stable}
---
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: web}
spec: {image: "nginx:1.22.1", replicas: 3}
---
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: one}
spec: {image: "nginx:1.22.1", replicas: 1}
---
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: db}
spec: {size: 3, version: 3.6.16}
---
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {type: NodePort, selector: {etcd_cluster: db}, ports: [{port: 2379}]}
`

// ready waits until all of them are as requested.
func ready(t testing.TB, namespace string) {
	t.Helper()
	e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, "--for=condition=Ready", "memcached/cache", "webserver/web", "webserver/one", "etcd/db")
}

// write begins a load of 200 operations a second on the EtcdCluster, through the first node.
func write(t testing.TB, namespace string) *load.Running {
	t.Helper()
	address := outside(t, namespace)
	l, err := load.Start(t.Context(), load.Config{Endpoints: func() []string { return []string{address} }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// outside is where clients on this machine reach the EtcdCluster: through the first node.
func outside(t testing.TB, namespace string) string {
	t.Helper()
	return net.JoinHostPort(e2e.Kubectl(t, "get", "node", firstNode, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`),
		e2e.Kubectl(t, "get", "service", "outside", "-n", namespace, "-o", "jsonpath={.spec.ports[0].nodePort}"))
}

// checked ends a load, and fails the test if an acknowledged write was lost.
func checked(t testing.TB, l *load.Running) load.Report {
	t.Helper()
	history, err := l.Stop(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := load.Check(history); err != nil {
		t.Error(err)
	}
	report := load.NewReport(history)
	t.Logf("%d writes acknowledged\n%s", report.Acknowledged(), report)
	return report
}

// TestDrain drains every node in turn, under load.
func TestDrain(t *testing.T) { drainAll(t, objects) }

// TestDrainWithVolumes is the same with members whose volumes any node can mount.
func TestDrainWithVolumes(t *testing.T) { drainAll(t, withVolumes("shared")) }

// TestDrainWithLocalVolumes is the same with members whose volumes only their nodes have.
func TestDrainWithLocalVolumes(t *testing.T) { drainAll(t, withVolumes("standard")) }

// withVolumes are the objects with a volume of a class for each member.
func withVolumes(class string) string {
	return strings.Replace(objects, "version: 3.6.16", "version: 3.6.16, pod: {persistentVolumeClaimSpec: {storageClassName: "+class+
		", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}", 1)
}

// drainAll drains every node in turn, and there are never fewer voting members than three.
func drainAll(t *testing.T, objects string) {
	stall.Judge(t, "the drains", func(t testing.TB) { drainEach(t, objects) }, nil)
}

func drainEach(t testing.TB, objects string) {
	t.Helper()
	nodes := threeNodes(t)
	managerTo(t, nodes)
	namespace := e2e.NewNamespace(t)
	e2e.Apply(t, namespace, objects)
	ready(t, namespace)
	fewest := countMembers(t, namespace)
	web, one, writes := request(t, namespace, "web"), request(t, namespace, "one"), write(t, namespace)
	time.Sleep(5 * time.Second) // undisturbed, as a measure
	type window struct {
		node     string
		from, to time.Time
	}
	var windows []window
	for _, node := range append(nodes[1:], firstNode) { // with the manager last
		w := window{node: node, from: time.Now()}
		drain(t, namespace, node)
		w.to = time.Now()
		windows = append(windows, w)
	}
	voters, serving := fewest()
	t.Logf("there were at least %d voting members, and at least %d ready pods", voters, serving)
	if voters < 3 || serving < 2 {
		t.Error("want at least 3 voting members, and 2 ready pods")
	}
	report := checked(t, writes)
	for _, w := range windows {
		gap := report.Gap(w.from, w.to)
		t.Logf("%s drained, and all as requested again, after %v: longest gap of writes %v", w.node, w.to.Sub(w.from).Round(time.Second), gap.Round(time.Millisecond))
		if limit := pace.Scale(longestGap); gap > limit {
			t.Errorf("while %s was drained, no write was acknowledged for %v, want at most %v", w.node, gap, limit)
		}
	}
	for name, r := range map[string]*requests{"three replicas": web, "one replica": one} {
		done, failed := r.end()
		t.Logf("web server of %s: %d requests, %d failed", name, done, len(failed))
		if len(failed) > 0 {
			t.Errorf("%s: %d of %d requests failed:\n%s", name, len(failed), done, strings.Join(failed[:min(len(failed), 10)], "\n"))
		}
	}
}

// longestGap is for how long no write may be acknowledged.
const longestGap = 2 * time.Second

// drain drains a node that a run is on, and lets pods come again when all is as requested.
func drain(t testing.TB, namespace, node string) {
	t.Helper()
	e2e.Apply(t, namespace, runOn(node))
	runs(t, namespace, node)
	servers := strings.Fields(e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", "memcached_cr=cache", "-o", "jsonpath={.items[*].metadata.name}"))
	leaving := strings.Fields(e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", "memcached_cr=cache", "-o", `jsonpath={.items[?(@.spec.nodeName=="`+node+`")].metadata.name}`))
	for _, server := range servers {
		if answer := ask(t, namespace, server, `set key 0 0 5\r\nvalue`); !strings.Contains(answer, "STORED") {
			t.Fatalf("%s answers %q", server, answer)
		}
	}
	t.Cleanup(func() { e2e.Kubectl(t, "uncordon", node) })
	out := e2e.Kubectl(t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", e2e.Patience)
	for _, pod := range append(leaving, "on-"+node) {
		if !strings.Contains(out, "pod/"+pod+" evicted") {
			t.Errorf("%s was not evicted:\n%s", pod, out)
		}
	}
	for _, server := range leaving {
		if node == firstNode {
			break // the manager was there, and is leaving as well
		}
		said := e2e.Kubectl(t, "get", "events", "-n", namespace, "--field-selector=reason=ServerEvicted", "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(said, "server "+server+" is leaving node") {
			t.Errorf("the events do not say that %s is leaving: %s", server, said)
		}
	}
	e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, "--for=jsonpath={.status.phase}=FAILED", "at/on-"+node)
	run := e2e.Kubectl(t, "get", "at/on-"+node, "-n", namespace, "-o", "jsonpath={.status.reason} {.status.attempts}")
	// The manager that is evicted with a run may be gone before that is over: the next one finds no pod.
	if run != "EvictionByEvictionAPI 1" && (node != firstNode || run != "ResultUnknown 1") {
		t.Errorf("the run on %s: %s", node, run)
	}
	ready(t, namespace)
	for _, server := range servers {
		if isThere := strings.Contains(ask(t, namespace, server, "get key"), "value"); isThere == slices.Contains(leaving, server) {
			t.Errorf("after the drain of %s, which had %v, the item of %s is there: %v", node, leaving, server, isThere)
		}
	}
	e2e.Kubectl(t, "uncordon", node)
}

// runOn is a run on a node.
func runOn(node string) string {
	return fmt.Sprintf(`
---
apiVersion: at.example.com/v1alpha1
kind: At
metadata: {name: on-%[1]s}
spec:
  schedule: "2026-01-01T00:00:00Z"
  command: sleep 3600
  podTemplate: {spec: {nodeSelector: {kubernetes.io/hostname: %[1]s}, terminationGracePeriodSeconds: 1}}
`, node)
}

// runs waits until the command of the run on a node runs.
func runs(t testing.TB, namespace, node string) {
	t.Helper()
	e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, "--for=jsonpath={.status.phase}=RUNNING", "at/on-"+node)
	e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, "--for=condition=Ready", "pod/on-"+node)
}

// ask sends a line to a server, and returns what it answers.
func ask(t testing.TB, namespace, server, line string) string {
	t.Helper()
	return e2e.Kubectl(t, "exec", "-n", namespace, server, "-c", "memcached", "--", "sh", "-c", fmt.Sprintf(`printf '%s\r\nquit\r\n' | nc 127.0.0.1 11211`, line))
}
