//go:build e2e

package memcached

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

const theGuidesMemcached = `
apiVersion: "cache.example.com/v1alpha1"
kind: "Memcached"
metadata: {name: "example-memcached"}
spec: {size: %d}
`

func TestMemcachedWalkthrough(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	nodes := func(n int) []string {
		t.Helper()
		var names []string
		pace.Eventually(t, 2*time.Minute, func() error {
			rows := e2e.Rows(e2e.Kubectl(t, "get", "deployment", "-n", ns))
			want := fmt.Sprintf("%d/%d", n, n)
			if len(rows) != 1 || rows[0][0] != "example-memcached" || rows[0][1] != want {
				return fmt.Errorf("kubectl get deployment shows %v, want %s", rows, want)
			}
			names = strings.Fields(e2e.Kubectl(t, "get", "memcached/example-memcached", "-n", ns, "-o", `go-template={{range .status.nodes}}{{.}} {{end}}`))
			if len(names) != n || !slices.IsSorted(names) {
				return fmt.Errorf("status.nodes is %v", names)
			}
			return nil
		})
		for _, name := range names {
			if !regexp.MustCompile(`^example-memcached-[a-z0-9]+-[a-z0-9]{5}$`).MatchString(name) {
				t.Errorf("a pod has the name %s", name)
			}
		}
		return names
	}
	e2e.Apply(t, ns, fmt.Sprintf(theGuidesMemcached, 3))
	three := nodes(3)
	e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/example-memcached")
	out := e2e.Kubectl(t, "get", "memcached", "-n", ns)
	if header := strings.Join(strings.Fields(strings.Split(out, "\n")[0]), " "); header != "NAME SIZE READY VERSION MEMORY STATUS AGE" {
		t.Errorf("columns of kubectl get memcached: %s", header)
	}
	e2e.Apply(t, ns, fmt.Sprintf(theGuidesMemcached, 4))
	for _, pod := range three {
		if four := nodes(4); !slices.Contains(four, pod) {
			t.Errorf("pod %s did not outlive the scale-up: %v", pod, four)
		}
	}
	e2e.Kubectl(t, "scale", "memcached/example-memcached", "-n", ns, "--replicas=0")
	nodes(0)
	if got := e2e.Kubectl(t, "get", "memcached/example-memcached", "-n", ns, "-o", "jsonpath={.status.nodes}"); got != "[]" {
		t.Errorf("with size 0 status.nodes is %s, want []", got)
	}

	if _, err := e2e.TryKubectl(fmt.Sprintf(theGuidesMemcached, 4), "delete", "-n", ns, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	pace.Eventually(t, time.Minute, func() error {
		left := e2e.Kubectl(t, "get", "deployments,statefulsets,services,poddisruptionbudgets,pods,secrets", "-n", ns, "-o", "name")
		if left = strings.TrimSpace(left); left != "" {
			return fmt.Errorf("there is still %s", left)
		}
		return nil
	})

	// A field that the API does not have.
	foo := strings.Replace(fmt.Sprintf(theGuidesMemcached, 4), "size: 4", "foo: bar", 1)
	if out, err := e2e.TryKubectl(foo, "apply", "-n", ns, "-f", "-"); err == nil || !strings.Contains(out, `unknown field "spec.foo"`) {
		t.Errorf("an unknown field gives %s", out)
	}
	if _, err := e2e.TryKubectl(foo, "apply", "-n", ns, "--validate=warn", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	nodes(1)
	logs := e2e.ManagerLogs(t, "memcached")
	for _, line := range []string{"Deployment created", "Service created", "size changed from 3 to 4"} {
		if !strings.Contains(logs, line) {
			t.Errorf("the operator's log does not say %q:\n%s", line, logs)
		}
	}
	e2e.CheckMetrics(t, "memcached", "Memcached")
}

// TestMemcachedMemoryGrows: a running server gets more memory, and keeps what it
// has.
func TestMemcachedMemoryGrows(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	e2e.Apply(t, ns, `
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: pool}
spec: {identity: Stable}
`)
	e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/pool")
	m := mustDial(t, exposed(t, ns, "pool-0"), nil)
	if err := m.fill(100); err != nil {
		t.Fatal(err)
	}
	before := serverPods(t, ns, "pool")["pool-0"]
	e2e.Kubectl(t, "patch", "memcached", "pool", "-n", ns, "--type=merge", "-p", `{"spec":{"memory":"96Mi"}}`)
	pace.Eventually(t, 2*time.Minute, func() error {
		out := e2e.Kubectl(t, "exec", "-n", ns, "pool-0", "-c", "memcached", "--", "sh", "-c", `printf 'stats\r\nquit\r\n' | nc 127.0.0.1 11211`)
		if want := fmt.Sprintf("STAT limit_maxbytes %d", 96<<20); !strings.Contains(out, want) {
			return fmt.Errorf("no %q", want)
		}
		return nil
	})
	e2e.Kubectl(t, "wait", "-n", ns, "--for=jsonpath={.status.memory}=96Mi", e2e.Patience, "memcached/pool")
	if hits, err := m.hits(100); hits != 100 {
		t.Errorf("%d of 100 items are there (%v)", hits, err)
	}
	after := serverPods(t, ns, "pool")["pool-0"]
	limit := after.Status.ContainerStatuses[0].Resources.Limits.Memory().String()
	if after.UID != before.UID || after.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID || limit != "184Mi" {
		t.Errorf("the container is another one, or has a limit of %s", limit)
	}
}

// TestMemcachedScalesAndDrains: the highest ordinal goes, the others are not
// touched; nodes are drained one server at a time, and a pool of one drains.
func TestMemcachedScalesAndDrains(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	e2e.Apply(t, ns, `
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: pool}
spec: {size: 2, identity: Stable}
`)
	ready := func(n int) {
		t.Helper()
		pace.Eventually(t, 2*time.Minute, func() error {
			got := e2e.Kubectl(t, "get", "memcached", "pool", "-n", ns, "-o", `jsonpath={.status.nodes} {.status.readyReplicas} {.status.conditions[?(@.type=="Ready")].status}`)
			if pods := serverPods(t, ns, "pool"); len(pods) != n || !strings.HasSuffix(got, fmt.Sprintf("] %d True", n)) {
				return fmt.Errorf("%d servers, status %s", len(pods), got)
			}
			return nil
		})
	}
	ready(2)
	first := serverPods(t, ns, "pool")
	same := func(names ...string) {
		t.Helper()
		now := serverPods(t, ns, "pool")
		for _, name := range names {
			if now[name].UID != first[name].UID || now[name].Status.ContainerStatuses[0].RestartCount > 0 {
				t.Errorf("%s is not what it was", name)
			}
		}
	}
	e2e.Kubectl(t, "scale", "memcached/pool", "-n", ns, "--replicas=3")
	ready(3)
	same("pool-0", "pool-1")
	want := fmt.Sprintf(`["pool-0.pool.%[1]s.svc:11211","pool-1.pool.%[1]s.svc:11211","pool-2.pool.%[1]s.svc:11211"]`, ns)
	if got := e2e.Kubectl(t, "get", "memcached", "pool", "-n", ns, "-o", "jsonpath={.status.servers}"); got != want {
		t.Errorf("status.servers is %s, want %s", got, want)
	}
	e2e.Kubectl(t, "scale", "memcached/pool", "-n", ns, "--replicas=2")
	ready(2)
	same("pool-0", "pool-1")

	if out, err := e2e.Evict(ns, "pool-1"); err != nil {
		t.Fatalf("the first one: %v %s", err, out)
	}
	if out, err := e2e.Evict(ns, "pool-0"); err == nil || !strings.Contains(out, "disruption budget") {
		t.Errorf("while one is away, another one may go: %s", out)
	}
	ready(2)
	same("pool-0")
	e2e.Kubectl(t, "scale", "memcached/pool", "-n", ns, "--replicas=1")
	ready(1)
	node := strings.TrimPrefix(strings.TrimSpace(e2e.Kubectl(t, "get", "nodes", "-o", "name")), "node/")
	t.Cleanup(func() { e2e.Kubectl(t, "uncordon", node) })
	e2e.Kubectl(t, "drain", node, "--pod-selector=memcached_cr=pool", "--delete-emptydir-data", e2e.Patience)
	e2e.Kubectl(t, "uncordon", node)
	ready(1)
}
