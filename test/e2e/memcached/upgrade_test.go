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
	"example.com/fairlead/internal/testkit/stall"
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

func startProbe(t testing.TB, address string) *prober {
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

// away are the times from the last answer before until the first one after, since the
// last call.
func (p *prober) away() [][2]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	gaps := p.gaps
	p.gaps = nil
	return gaps
}

// longestGap bounds for how long a server may be away. The figure itself is the
// benchmark's; here a machine that is busy with other things may be slow.
const longestGap = 10 * time.Second

// serverPods are the pods of a pool, by name.
func serverPods(t testing.TB, namespace, pool string) map[string]corev1.Pod {
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

// TestAloneMemcachedUpgradesWarm: three filled servers get another version, with
// the operator killed on the way, then other settings, then an image that
// cannot be had.
func TestAloneMemcachedUpgradesWarm(t *testing.T) {
	const items, size = 20_000, 3
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	e2e.Apply(t, ns, `
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: pool}
spec: {size: 3, version: 1.6.18, identity: Stable, upgrade: Warm}
`)
	e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/pool")
	var addresses []string
	var probes []*prober
	for i := range size {
		address := exposed(t, ns, fmt.Sprintf("pool-%d", i))
		_ = mustDial(t, address, nil)
		addresses, probes = append(addresses, address), append(probes, startProbe(t, address))
	}
	set := func(t testing.TB, spec string) {
		t.Helper()
		e2e.Kubectl(t, "patch", "memcached", "pool", "-n", ns, "--type=merge", "-p", `{"spec":`+spec+`}`)
	}
	wait := func(t testing.TB, condition string) {
		t.Helper()
		e2e.Kubectl(t, "wait", "-n", ns, "--for="+condition, e2e.Patience, "memcached/pool")
	}
	steps := []struct {
		name             string
		do               func(t testing.TB)
		undo             string // the spec as it was
		version, threads string // afterwards
		gaps             int
	}{
		{
			name: "another version", version: "1.6.38", threads: "4", gaps: 1, undo: `{"version":"1.6.18"}`,
			do: func(t testing.TB) {
				set(t, `{"version":"1.6.38"}`)
				wait(t, "jsonpath={.status.upgrade.server}=pool-2")
				e2e.Kubectl(t, "delete", "pod", "-n", "memcached-operator-system", "-l", "control-plane=controller-manager", "--grace-period=0", "--force")
				wait(t, "jsonpath={.status.version}=1.6.38")
				e2e.Kubectl(t, "rollout", "status", "-n", ns, "statefulset/pool", e2e.Patience)
			},
		},
		{
			name: "fewer threads", version: "1.6.38", threads: "2", gaps: 1, undo: `{"threads":null}`,
			do: func(t testing.TB) { set(t, `{"threads":2}`) },
		},
		{
			name: "an image that cannot be had", version: "1.6.38", threads: "2", undo: `{"version":"1.6.38"}`,
			do: func(t testing.TB) {
				set(t, `{"version":"1.6.99"}`)
				wait(t, `jsonpath={.status.conditions[?(@.type=="Ready")].reason}=ImagePullFailed`)
				set(t, `{"version":"1.6.38"}`)
			},
		},
	}
	for _, step := range steps {
		stall.Judge(t, step.name, func(t testing.TB) {
			before := serverPods(t, ns, "pool")
			for i, address := range addresses {
				if err := mustDial(t, address, nil).fill(items); err != nil {
					t.Fatal(err)
				}
				probes[i].away() // what was before does not count
			}
			step.do(t)
			wait(t, "condition=Ready") // of the spec as it is now
			var all [][2]time.Time
			for i, address := range addresses {
				m := mustDial(t, address, nil)
				if answer, err := m.ask("version"); answer != "VERSION "+step.version {
					t.Errorf("pool-%d answers %q (%v)", i, answer, err)
				}
				hits, err := m.hits(items)
				if err != nil || hits < items*99/100 {
					t.Errorf("pool-%d has %d of %d items (%v)", i, hits, items, err)
				}
				away := probes[i].away()
				t.Logf("%s: pool-%d has %d of %d items", step.name, i, hits, items)
				for _, gap := range away {
					t.Logf("%s: pool-%d was away for %v", step.name, i, gap[1].Sub(gap[0]).Round(time.Millisecond))
				}
				if len(away) != step.gaps {
					t.Errorf("pool-%d was away %d times, want %d", i, len(away), step.gaps)
				}
				all = append(all, away...)
				if out := e2e.Kubectl(t, "exec", "-n", ns, fmt.Sprintf("pool-%d", i), "-c", "memcached", "--", "sh", "-c", `printf 'stats\r\nquit\r\n' | nc 127.0.0.1 11211`); !strings.Contains(out, "STAT threads "+step.threads) {
					t.Errorf("pool-%d has not %s threads", i, step.threads)
				}
			}
			for i, a := range all {
				if took := a[1].Sub(a[0]); took > pace.Scale(longestGap) {
					t.Errorf("a server was away for %v; its containers and events:\n%s\n%s", took,
						e2e.Kubectl(t, "get", "pods", "-n", ns, "-o", `jsonpath={range .items[*]}{.metadata.name}: {.metadata.annotations}{"\n"}{.status.containerStatuses}{"\n"}{end}`),
						e2e.Kubectl(t, "get", "events", "-n", ns, "--sort-by=.lastTimestamp"))
				}
				for _, b := range all[:i] {
					if a[0].Before(b[1]) && b[0].Before(a[1]) {
						t.Errorf("two servers were away at the same time: %v and %v", a, b)
					}
				}
			}
			after := serverPods(t, ns, "pool")
			for name, pod := range before {
				if now := after[name]; now.UID != pod.UID || now.Status.PodIP != pod.Status.PodIP {
					t.Errorf("%s is another pod, or has another address", name)
				}
			}
		}, func(t testing.TB) {
			set(t, step.undo)
			wait(t, "condition=Ready")
		})
	}

	set(t, `{"memory":"80Mi"}`)
	wait(t, "jsonpath={.status.memory}=80Mi")
	wait(t, "condition=Ready")
	if events := e2e.Kubectl(t, "get", "events", "-n", ns); !strings.Contains(events, "memory from 64Mi to 80Mi") || !strings.Contains(events, "ColdUpgrade") {
		t.Errorf("no event tells of the cold change:\n%s", events)
	}
}
