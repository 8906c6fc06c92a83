//go:build e2e

package moving

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/test/e2e"
)

const whileItRuns = "While it runs"

// TestAloneTakesOverEtcd: the chart's etcd is taken over while two applications write to it, or left as it was: the cluster
// stays the same, and no acknowledged write is lost.
func TestAloneTakesOverEtcd(t *testing.T) {
	e2e.NeedsLocalCluster(t, "it loads an image of its own")
	e2e.Load(t, "./writer", "writer:dev")
	m := stand(t, "chart.yaml")
	m.names = strings.NewReplacer("headless.shop.svc", "headless."+m.namespace+".svc")
	acknowledged := m.followTimes()
	id := m.clusterID("my-etcd-0", "--dial-timeout=30s", "--user=root:"+chartPassword)
	for block := range 4 { // Helm forgets it, authentication off, join, lead the clients
		m.guide(whileItRuns, block)
	}
	m.survivesDeletion()
	m.guide(whileItRuns, 6) // go back
	if list := m.kubectl("exec", "my-etcd-0", "--", "etcdctl", "member", "list"); strings.Count(list, "started") != 3 {
		t.Fatalf("after going back, the members are\n%s", list)
	}
	for block := range 3 {
		m.guide(whileItRuns, block+2) // join again, lead, and stop the members of before
	}
	m.guide(whileItRuns, 5)
	time.Sleep(2 * time.Second) // it writes
	m.kubectl("scale", "deployment", "application", "--replicas=0")
	m.kubectl("wait", "pod", "-l", "app=application", "--for=delete", "--timeout=5m")
	now := m.now()
	lost, writes := 0, acknowledged()
	for _, w := range writes {
		if _, ok := now[w.key]; !ok {
			lost++
			t.Errorf("the cluster lacks %s", w.key)
		}
	}
	took, longest, at := gaps(writes)
	t.Logf("%d writes acknowledged in %s, %.0f a second, %d lost, the longest gap of a writer %s, at %s",
		len(writes), took, float64(len(writes))/took.Seconds(), lost, longest, at.Format(time.TimeOnly))
	if got := m.kubectl("get", "etcd", "example", "-o", "jsonpath={.status.clusterID}"); got != id {
		t.Errorf("the cluster's ID is %s, was %s", got, id)
	}
	if users, err := m.etcdctl("user", "list"); err != nil || !strings.Contains(users, "reader\n") {
		t.Errorf("users are %q (%v)", users, err)
	}
	if now["/kept"].Version != 2 || len(writes) < 100 {
		t.Errorf("/kept is %+v, and %d writes were acknowledged", now["/kept"], len(writes))
	}
}

// survivesDeletion: an EtcdCluster that is deleted leaves its members running, and takes them in when it is created again.
func (m *moved) survivesDeletion() {
	m.t.Helper()
	pods := func() string {
		return m.kubectl("get", "pods", "-l", "etcd_cluster=example", "-o", "jsonpath={.items[*].metadata.uid}")
	}
	before := pods()
	m.kubectl("delete", "etcd", "example")
	time.Sleep(10 * time.Second) // the garbage collector would have deleted them
	if now := pods(); now != before {
		m.t.Fatalf("of the pods %s there are %s", before, now)
	}
	again := e2e.GuideCommands(m.t, "moving/etcd.md", whileItRuns, 3)[2]
	e2e.RunGuide(m.t, m.namespace, m.names.Replace(strings.Replace(again, "  joinFrom:", "  adoptExisting: true\n  joinFrom:", 1)))
	if now := pods(); now != before {
		m.t.Fatalf("of the pods %s there are %s", before, now)
	}
}

// clusterID is that of the etcd in a pod.
func (m *moved) clusterID(pod string, flags ...string) string {
	m.t.Helper()
	out := m.kubectl(append([]string{"exec", pod, "--", "etcdctl", "endpoint", "status", "-w", "json"}, flags...)...)
	var all []struct {
		Status struct {
			Header struct {
				ID uint64 `json:"cluster_id"`
			}
		}
	}
	_, list, _ := strings.Cut(out, "[") // there are warnings, too
	if err := json.Unmarshal([]byte("["+list), &all); err != nil || len(all) != 1 {
		m.t.Fatalf("%s: %v", out, err)
	}
	return fmt.Sprintf("%x", all[0].Status.Header.ID)
}

// written is a write that was acknowledged.
type written struct {
	at  time.Time
	key string
}

// followTimes is follow, with the times of the node.
func (m *moved) followTimes() func() []written {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "kubectl", "logs", "-n", m.namespace, "-l", "app=application", "--follow", "--timestamps", "--tail=-1")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	return func() (all []written) {
		_ = cmd.Wait() // it has ended with the pods
		for line := range strings.Lines(out.String()) {
			text, key, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if at, err := time.Parse(time.RFC3339Nano, text); err == nil && strings.HasPrefix(key, "/application/") {
				all = append(all, written{at, key})
			}
		}
		return all
	}
}

// gaps is how long writers wrote, and the longest time for which one of them had no write acknowledged, and since when.
func gaps(writes []written) (took, longest time.Duration, at time.Time) {
	last := map[string]time.Time{}
	first := time.Time{}
	for _, w := range writes {
		writer := w.key[:strings.LastIndex(w.key, "/")]
		if before, ok := last[writer]; ok {
			if gap := w.at.Sub(before); gap > longest {
				longest, at = gap, before
			}
		}
		if last[writer] = w.at; first.IsZero() || w.at.Before(first) {
			first = w.at
		}
		took = max(took, w.at.Sub(first))
	}
	return took, longest, at
}
