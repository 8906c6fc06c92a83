//go:build e2e

package memcached

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestLeaveMemcached: without its Memcached, the pool runs on.
func TestLeaveMemcached(t *testing.T) {
	ns := e2e.NewNamespace(t)
	e2e.Apply(t, ns, "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: cache}\nspec: {size: 2}\n")
	e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/cache")
	e2e.LeavesByGuide(t, ns, "From a Memcached", "deployments,services,poddisruptionbudgets", 3)
}

// TestMoveMemcached follows docs/moving/memcached.md word for word, once with clients that know the Service's name, and
// once with clients that read from both pools.
func TestMoveMemcached(t *testing.T) {
	e2e.NeedsLocalCluster(t, "its client reaches node ports")
	for _, readsBoth := range []bool{false, true} {
		t.Run(fmt.Sprintf("reads both %t", readsBoth), func(t *testing.T) {
			t.Parallel()
			ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
			e2e.RunGuide(t, ns, e2e.GuideCommands(t, "moving/memcached.md", "", 1)[0]) // the starting point
			// This client is outside of the cluster.
			e2e.Kubectl(t, "patch", "service", "my-memcached", "-n", ns, "--type=merge", "-p", `{"spec":{"type":"NodePort"}}`)
			guide := func(section string) {
				t.Helper()
				e2e.RunGuide(t, ns, e2e.GuideCommands(t, "moving/memcached.md", section, 1)[0])
			}
			reads := readThrough(t, nodePort(t, ns, "my-memcached"))
			reads.warm(0)
			guide("1. Put a pool beside it")
			began := len(reads.rates())
			if readsBoth {
				reads.prefer(exposed(t, ns, "cache-0"))
				time.Sleep(15 * time.Second)
				reads.forget()
				e2e.Kubectl(t, "scale", "-n", ns, "deployment/my-memcached", "--replicas=0")
			} else {
				guide("2. Lead the clients to it")
			}
			reads.warm(began + 5)
			guide("4. Delete the old one")
			rates := reads.rates()
			t.Logf("hit rates by the second, the move begins at %d, %d reads a second: %.3f", began, reads.count()/len(rates), rates)
			worst := rates[began]
			for _, rate := range rates[began : len(rates)-1] {
				worst = min(worst, rate)
			}
			if readsBoth && worst < 0.95 {
				t.Errorf("with both pools the hit rate falls to %.3f", worst)
			}
		})
	}
}

func nodePort(t testing.TB, namespace, service string) string {
	t.Helper()
	return net.JoinHostPort(
		strings.Fields(e2e.Kubectl(t, "get", "nodes", "-o", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`))[0],
		e2e.Kubectl(t, "get", "service", service, "-n", namespace, "-o", "jsonpath={.spec.ports[0].nodePort}"))
}

// readers read keys at random through a cache: what it has not, they write to it.
type readers struct {
	t  testing.TB
	mu sync.Mutex
	// at are the servers, the one that is read first, and written to, first.
	at    []string
	began time.Time
	// reads and hits are those of each second.
	reads, hits []int
}

const movedKeys = 2000

func readThrough(t *testing.T, at string) *readers {
	t.Helper()
	r := &readers{t: t, at: []string{at}, began: time.Now()}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			servers := map[string]*mcClient{}
			for t.Context().Err() == nil {
				r.read(servers)
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	t.Cleanup(all.Wait)
	return r
}

// read reads one key. A server that does not answer has nothing, and is connected to again.
func (r *readers) read(servers map[string]*mcClient) {
	key, value := item(rand.IntN(movedKeys))
	r.mu.Lock()
	at := r.at
	r.mu.Unlock()
	hit := false
	for i, address := range at {
		_ = on(servers, address, func(c *mcClient) error {
			answer, err := c.ask("get " + key)
			if err == nil && answer != "END" {
				hit = true
				_, err = c.r.ReadString('\n')
				if err == nil {
					_, err = c.r.ReadString('\n') // END
				}
			}
			return err
		})
		if hit && i == 0 {
			r.note(true)
			return
		}
	}
	_ = on(servers, at[0], func(c *mcClient) error {
		_, err := c.ask(fmt.Sprintf("set %s 0 0 %d\r\n%s", key, len(value), value))
		return err
	})
	r.note(hit)
}

func on(servers map[string]*mcClient, address string, do func(*mcClient) error) error {
	c := servers[address]
	if c == nil {
		var err error
		if c, err = dialMemcached(address, nil); err != nil {
			return err
		}
		servers[address] = c
	}
	err := do(c)
	if err != nil {
		_ = c.Close()
		delete(servers, address)
	}
	return err
}

func (r *readers) note(hit bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for second := int(time.Since(r.began).Seconds()); len(r.reads) <= second; {
		r.reads, r.hits = append(r.reads, 0), append(r.hits, 0)
	}
	r.reads[len(r.reads)-1]++
	if hit {
		r.hits[len(r.hits)-1]++
	}
}

// prefer has another server read first.
func (r *readers) prefer(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = []string{address, r.at[0]}
}

// forget has only the first server used.
func (r *readers) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = r.at[:1]
}

// warm waits until nearly all reads hit, after some seconds at least.
func (r *readers) warm(after int) {
	r.t.Helper()
	pace.Eventually(r.t, time.Minute, func() error {
		if now := r.rates(); len(now) < after+3 || now[len(now)-2] < 0.99 || now[len(now)-3] < 0.99 {
			return fmt.Errorf("the hit rate is %.3f", now)
		}
		return nil
	})
}

// rates are the hit rates of each second, the last of which is not over. One without a read counts as 0.
func (r *readers) rates() []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	rates := make([]float64, len(r.reads))
	for i, reads := range r.reads {
		rates[i] = float64(r.hits[i]) / float64(max(reads, 1))
	}
	return rates
}

func (r *readers) count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reads := range r.reads {
		n += reads
	}
	return n
}
