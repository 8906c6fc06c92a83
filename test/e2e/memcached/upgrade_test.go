//go:build e2e

package memcached

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// prober asks a server again and again, each time over a connection of its own,
// and keeps for how long it was away.
type prober struct {
	address string

	mu      sync.Mutex
	gaps    [][2]time.Time
	last    time.Time // answered
	failing bool
}

func startProbe(t *testing.T, address string) *prober {
	p := &prober{address: address, last: time.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			p.probe()
			time.Sleep(20 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return p
}

func (p *prober) probe() {
	m, err := dialMemcached(p.address, nil)
	if err == nil {
		_, err = m.ask("version")
		_ = m.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case err != nil:
		p.failing = true
	case p.failing:
		p.gaps, p.failing, p.last = append(p.gaps, [2]time.Time{p.last, now}), false, now
	default:
		p.last = now
	}
}

// away are the times from the last answer before until the first one after.
func (p *prober) away() [][2]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gaps
}

// longestGap bounds for how long a server may be away. The figure itself is the
// benchmark's; here a machine that is busy with other things may be slow.
const longestGap = 10 * time.Second

// serverPods are the pods of a pool, by name.
func serverPods(t *testing.T, namespace, pool string) map[string]corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := c.List(context.Background(), &list, client.InNamespace(namespace), client.MatchingLabels{"app": "memcached", "memcached_cr": pool}); err != nil {
		t.Fatal(err)
	}
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods[pod.Name] = pod
		}
	}
	return pods
}

// TestMemcachedUpgradesWarm: three filled servers get another version, with
// the operator killed on the way, then other settings, then an image that
// cannot be had.
func TestMemcachedUpgradesWarm(t *testing.T) {
	const items, size = 20_000, 3
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	e2e.Apply(t, ns, `
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: pool}
spec: {size: 3, version: 1.6.18, identity: Stable, upgrade: Warm}
`)
	e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/pool")
	before := serverPods(t, ns, "pool")
	var addresses []string
	var probes []*prober
	for i := range size {
		address := exposed(t, ns, fmt.Sprintf("pool-%d", i))
		if err := mustDial(t, address, nil).fill(items); err != nil {
			t.Fatal(err)
		}
		addresses, probes = append(addresses, address), append(probes, startProbe(t, address))
	}
	check := func(what, version, threads string, gaps int) {
		t.Helper()
		var all [][2]time.Time
		for i, address := range addresses {
			m := mustDial(t, address, nil)
			if answer, err := m.ask("version"); answer != "VERSION "+version {
				t.Errorf("%s: pool-%d answers %q (%v)", what, i, answer, err)
			}
			hits, err := m.hits(items)
			if err != nil || hits < items*99/100 {
				t.Errorf("%s: pool-%d has %d of %d items (%v)", what, i, hits, items, err)
			}
			away := probes[i].away()
			t.Logf("%s: pool-%d has %d of %d items", what, i, hits, items)
			for _, gap := range away[max(0, len(away)-1):] {
				t.Logf("%s: pool-%d was away for %v", what, i, gap[1].Sub(gap[0]).Round(time.Millisecond))
			}
			if len(away) != gaps {
				t.Errorf("%s: pool-%d was away %d times, want %d", what, i, len(away), gaps)
			}
			all = append(all, away...)
			if out := e2e.Kubectl(t, "exec", "-n", ns, fmt.Sprintf("pool-%d", i), "-c", "memcached", "--", "sh", "-c", `printf 'stats\r\nquit\r\n' | nc 127.0.0.1 11211`); !strings.Contains(out, "STAT threads "+threads) {
				t.Errorf("%s: pool-%d has not %s threads", what, i, threads)
			}
		}
		for i, a := range all {
			if took := a[1].Sub(a[0]); took > pace.Scale(longestGap) {
				t.Errorf("%s: a server was away for %v", what, took)
			}
			for _, b := range all[:i] {
				if a[0].Before(b[1]) && b[0].Before(a[1]) {
					t.Errorf("%s: two servers were away at the same time: %v and %v", what, a, b)
				}
			}
		}
		after := serverPods(t, ns, "pool")
		for name, pod := range before {
			if now := after[name]; now.UID != pod.UID || now.Status.PodIP != pod.Status.PodIP {
				t.Errorf("%s: %s is another pod, or has another address", what, name)
			}
		}
	}
	settled := func(path, value string) {
		t.Helper()
		e2e.Kubectl(t, "wait", "-n", ns, "--for=jsonpath={"+path+"}="+value, e2e.Patience, "memcached/pool")
		e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/pool")
	}

	e2e.Kubectl(t, "patch", "memcached", "pool", "-n", ns, "--type=merge", "-p", `{"spec":{"version":"1.6.38"}}`)
	e2e.Kubectl(t, "wait", "-n", ns, "--for=jsonpath={.status.upgrade.server}=pool-2", e2e.Patience, "memcached/pool")
	e2e.Kubectl(t, "delete", "pod", "-n", "memcached-operator-system", "-l", "control-plane=controller-manager", "--grace-period=0", "--force")
	settled(".status.version", "1.6.38")
	check("another version", "1.6.38", "4", 1)
	e2e.Kubectl(t, "rollout", "status", "-n", ns, "statefulset/pool", e2e.Patience)

	generation := e2e.Kubectl(t, "get", "memcached", "pool", "-n", ns, "-o", "jsonpath={.metadata.generation}")
	e2e.Kubectl(t, "patch", "memcached", "pool", "-n", ns, "--type=merge", "-p", `{"spec":{"threads":2}}`)
	pace.Eventually(t, 30*time.Second, func() error {
		if now := e2e.Kubectl(t, "get", "memcached", "pool", "-n", ns, "-o", "jsonpath={.status.observedGeneration}"); now == generation {
			return fmt.Errorf("generation %s is the last one seen", now)
		}
		return nil
	})
	settled(".status.conditions[?(@.type==\"Ready\")].reason", "Ready")
	check("fewer threads", "1.6.38", "2", 2)

	e2e.Kubectl(t, "patch", "memcached", "pool", "-n", ns, "--type=merge", "-p", `{"spec":{"version":"1.6.99"}}`)
	e2e.Kubectl(t, "wait", "-n", ns, `--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=ImagePullFailed`, e2e.Patience, "memcached/pool")
	e2e.Kubectl(t, "patch", "memcached", "pool", "-n", ns, "--type=merge", "-p", `{"spec":{"version":"1.6.38"}}`)
	settled(".status.conditions[?(@.type==\"Ready\")].reason", "Ready")
	check("an image that cannot be had", "1.6.38", "2", 2)

	e2e.Kubectl(t, "patch", "memcached", "pool", "-n", ns, "--type=merge", "-p", `{"spec":{"memory":"80Mi"}}`)
	settled(".status.memory", "80Mi")
	if events := e2e.Kubectl(t, "get", "events", "-n", ns); !strings.Contains(events, "memory from 64Mi to 80Mi") || !strings.Contains(events, "ColdUpgrade") {
		t.Errorf("no event tells of the cold change:\n%s", events)
	}
}
