//go:build e2e

package webserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/internal/testkit/stall"
	"example.com/fairlead/test/e2e"
)

const (
	// requestRate is how many requests a second there are.
	requestRate = 200
	// every slowEvery-th request is one that takes some 2 s to answer.
	slowEvery = 20
	slowSize  = 20 << 10 // at 10 KiB/s
)

// load sends requests at a fixed rate, whatever becomes of them: every other
// one over a connection of its own, the rest over connections that are kept.
type load struct {
	namespace string
	mu        sync.Mutex
	now       *batch // what new requests belong to
}

// batch is the requests since the batch before.
type batch struct {
	load             *load
	requests         sync.WaitGroup
	answered, failed atomic.Int64
	mu               sync.Mutex
	failures         []string
	atFirst          string // what the pods and endpoints were like at the first failure
}

// startLoad sends requests until the test ends.
func startLoad(t *testing.T, namespace, name string) *load {
	t.Helper()
	url := webURL(t, namespace, name)
	// Ready is about pods: that the node passes requests on to them takes its
	// kube-proxy a moment more, once.
	for answered := 0; answered < 20; answered++ {
		pace.Eventually(t, 10*time.Second, func() error { _, err := page(url); return err })
		time.Sleep(50 * time.Millisecond)
	}
	l := &load{namespace: namespace}
	l.next()
	dial := (&ports{}).dial
	fresh := &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	kept := &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 64}}
	stop := make(chan struct{})
	var ticker sync.WaitGroup
	ticker.Go(func() {
		tick := time.NewTicker(time.Second / requestRate)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			client, path, size := fresh, "/", 0
			if n%2 == 0 {
				client = kept
			}
			if n%slowEvery < 2 { // of both sorts of connections
				path, size = "/slow.txt", slowSize
			}
			l.send(client, url+path, size)
		}
	})
	t.Cleanup(func() { close(stop); ticker.Wait(); l.next() })
	return l
}

// ports are those that the load connects from, each only once in minutes, as if every connection came
// from another client. Where the system chooses, a port can be that of a connection which a leaving
// server reset a moment ago: for 10 s, the node's connection tracking leads it to that server again,
// although its Service leads elsewhere (net.netfilter.nf_conntrack_tcp_timeout_close).
type ports struct{ used atomic.Int64 }

// They are below those that Linux chooses from.
const firstPort, portCount = 20000, 12000

func (p *ports) dial(ctx context.Context, network, address string) (net.Conn, error) {
	for {
		port := firstPort + int(p.used.Add(1)%portCount)
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{Port: port}}).DialContext(ctx, network, address)
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return conn, err
		}
	}
}

// next ends the batch, waits until all of its requests have ended, and returns it.
func (l *load) next() *batch {
	l.mu.Lock()
	ended := l.now
	l.now = &batch{load: l}
	l.mu.Unlock()
	if ended != nil {
		ended.requests.Wait()
	}
	return ended
}

func (l *load) send(client *http.Client, url string, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.now
	b.requests.Go(func() { b.request(client, url, size) })
}

func (b *batch) request(client *http.Client, url string, size int) {
	began := time.Now()
	err := func() error {
		resp, err := client.Get(url)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		switch {
		case err != nil:
			return err
		case resp.StatusCode != http.StatusOK:
			return fmt.Errorf("status %s", resp.Status)
		case size > 0 && len(body) != size:
			return fmt.Errorf("%d bytes, want %d", len(body), size)
		}
		return nil
	}()
	if err == nil {
		b.answered.Add(1)
		return
	}
	failure := fmt.Sprintf("%s after %v: %v", began.Format("15:04:05.000"), time.Since(began).Round(time.Millisecond), err)
	if b.failed.Add(1) == 1 {
		b.atFirst = b.load.look()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = append(b.failures, failure)
}

// look is what the pods and endpoints are like now, since when, and how the node's rules
// followed them.
func (l *load) look() string {
	pods, _ := e2e.TryKubectl("", "get", "pods", "-n", l.namespace, "-o", "custom-columns=NAME:.metadata.name,IP:.status.podIP,"+
		"DELETED:.metadata.deletionTimestamp,GRACE:.metadata.deletionGracePeriodSeconds,STATE:.status.containerStatuses[*].state")
	endpoints, _ := e2e.TryKubectl("", "get", "endpointslices", "-n", l.namespace, "--show-managed-fields",
		"-o", `jsonpath={range .items[*]}{.metadata.managedFields[*].time}: {range .endpoints[*]}{.addresses} {.conditions}{"\n"}{end}{end}`)
	rules, _ := os.ReadFile(filepath.Join(os.Getenv("LOCALCLUSTER_DIR"), "log", "kube-proxy.log"))
	return fmt.Sprintf("%s%s%s", pods, endpoints, rules[max(0, len(rules)-4000):])
}

// judge ends the batch, and fails the test for every request of it that failed.
func (l *load) judge(t testing.TB) {
	t.Helper()
	b := l.next()
	t.Logf("%d requests answered, %d failed", b.answered.Load(), b.failed.Load())
	if b.failed.Load() > 0 {
		// What failed comes last: of a long output, CI shows the end.
		t.Errorf("at the first request that failed:\n%s\nrequests failed:\n%s", b.atFirst, strings.Join(b.failures[:min(len(b.failures), 20)], "\n"))
	}
}

const slowConfig = `
apiVersion: v1
kind: ConfigMap
metadata: {name: slow}
data:
  default.conf: |
    server {
      listen 80;
      root /usr/share/nginx/html;
      location = /slow.txt { limit_rate 10k; }
    }
---
apiVersion: v1
kind: ConfigMap
metadata: {name: files}
data:
  index.html: "<h1>Hello</h1>"
  slow.txt: %q
`

// TestAloneWebServerLosesNoRequest: 200 requests a second through the NodePort, and
// everything that one does to a web server.
func TestAloneWebServerLosesNoRequest(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	e2e.Apply(t, ns, fmt.Sprintf(slowConfig, strings.Repeat("x", slowSize)))
	config, _, _ := strings.Cut(slowConfig, "---")
	e2e.Apply(t, ns, strings.NewReplacer("name: slow", "name: moved", "listen 80", "listen 8080").Replace(config))
	drain, drainLess := pace.Seconds(15), pace.Seconds(5)
	e2e.Apply(t, ns, `
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: busy}
spec:
  image: `+oldNginx+`
  replicas: 1
  config: {configMap: slow}
  content: {configMap: files}
  rollout: {drainSeconds: `+fmt.Sprint(drain)+`} # the only pod's replacement has to start meanwhile
`)
	l := startLoad(t, ns, "busy")
	set := func(t testing.TB, spec string) {
		t.Helper()
		e2e.Kubectl(t, "patch", "webserver", "busy", "-n", ns, "--type=merge", "-p", `{"spec":`+spec+`}`)
	}
	deleteOne := func(t testing.TB) {
		t.Helper()
		e2e.Kubectl(t, "delete", "pod", "-n", ns, "--wait=false", podNames(t, ns, "busy")[0])
	}
	ready := func(t testing.TB) {
		t.Helper()
		e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "webserver/busy")
	}
	settled := func(t testing.TB, replicas int) {
		t.Helper()
		wantDeployment(t, ns, "busy", replicas)
		ready(t)
		wantNoneLeaving(t, ns, "busy")
	}
	pages, replicas := 0, 1
	steps := []struct {
		name     string
		replicas int
		spec     string             // what is changed of it,
		do       func(t testing.TB) // or else what is done, which can be done again
		undo     string             // the spec as it was
	}{
		{name: "another image, with one pod", replicas: 1, spec: `{"image":"` + newNginx + `"}`, undo: `{"image":"` + oldNginx + `"}`},
		{name: "the only pod deleted", replicas: 1, do: deleteOne},
		{
			name: "three pods, and less time to drain", replicas: 3,
			spec: fmt.Sprintf(`{"replicas":3,"rollout":{"drainSeconds":%d}}`, drainLess),
			undo: fmt.Sprintf(`{"replicas":1,"rollout":{"drainSeconds":%d}}`, drain),
		},
		{name: "a pod deleted", replicas: 3, do: deleteOne},
		{name: "another page", replicas: 3, do: func(t testing.TB) {
			t.Helper()
			pages++
			e2e.Kubectl(t, "patch", "configmap", "files", "-n", ns, "--type=merge", "-p", fmt.Sprintf(`{"data":{"index.html":"<h1>Hello, page %d</h1>"}}`, pages))
		}},
		{ // where only the new pods listen
			name: "another port", replicas: 3,
			spec: `{"port":8080,"config":{"configMap":"moved"}}`, undo: `{"port":null,"config":{"configMap":"slow"}}`,
		},
		{name: "one pod", replicas: 1, spec: `{"replicas":1}`, undo: `{"replicas":3}`},
	}
	time.Sleep(2 * time.Second)
	for _, step := range steps {
		stall.Judge(t, step.name, func(t testing.TB) {
			before := strings.Join(podNames(t, ns, "busy"), " ")
			if step.do != nil {
				step.do(t)
			} else {
				set(t, step.spec)
			}
			pace.Eventually(t, 2*time.Minute, func() error {
				if strings.Join(podNames(t, ns, "busy"), " ") == before {
					return errors.New("nothing has happened")
				}
				return nil
			})
			settled(t, step.replicas)
			l.judge(t)
		}, func(t testing.TB) {
			if step.undo != "" {
				set(t, step.undo)
			}
			ready(t) // that it has seen: the Deployment may still be as it was
			settled(t, replicas)
			l.next()
		})
		replicas = step.replicas
	}
}

// wantNoneLeaving waits until all pods that were to go are gone. While no pod is ready,
// requests go to all that are leaving, also to the one that ends first.
func wantNoneLeaving(t testing.TB, namespace, name string) {
	t.Helper()
	pace.Eventually(t, 2*time.Minute, func() error {
		if left := e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", "webserver_cr="+name,
			"-o", `go-template={{range .items}}{{if .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}`); left != "" {
			return fmt.Errorf("pods that are leaving: %s", left)
		}
		return nil
	})
}

// TestAloneWebServerRollsBack: an image that cannot be had, and a configuration that
// nginx refuses, are put back, while all requests are answered.
func TestAloneWebServerRollsBack(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	e2e.Apply(t, ns, fmt.Sprintf(slowConfig, strings.Repeat("x", slowSize)))
	e2e.Apply(t, ns, `
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: steady}
spec:
  image: `+oldNginx+`
  replicas: 2
  config: {configMap: slow}
  content: {configMap: files}
  rollout: {deadlineSeconds: `+fmt.Sprint(pace.Seconds(10))+`}
`)
	l := startLoad(t, ns, "steady")
	message := func(t testing.TB, reason string, words ...string) {
		t.Helper()
		pace.Eventually(t, time.Minute, func() error {
			got := e2e.Kubectl(t, "get", "webserver", "steady", "-n", ns, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}: {.status.conditions[?(@.type=="Ready")].message}`)
			for _, word := range append(words, reason+": ") {
				if !strings.Contains(got, word) {
					return fmt.Errorf("the condition Ready says %q, want %q", got, word)
				}
			}
			return nil
		})
		wantDeployment(t, ns, "steady", 2)
	}
	image := func(t testing.TB, image string) {
		t.Helper()
		e2e.Kubectl(t, "patch", "webserver", "steady", "-n", ns, "--type=merge", "-p", `{"spec":{"image":"`+image+`"}}`)
	}
	config := func(t testing.TB, config string) {
		t.Helper()
		e2e.Kubectl(t, "patch", "configmap", "slow", "-n", ns, "--type=merge", "-p", `{"data":{"default.conf":"`+config+`"}}`)
	}
	const goodConfig = "server { listen 80; root /usr/share/nginx/html; location = /slow.txt { limit_rate 10k; } }"
	steps := []struct {
		name      string
		do, undo  func(t testing.TB)
		words     []string
		keepsPods bool // when it is undone
	}{
		{
			name: "an image that cannot be had", words: []string{"nginx:0.0.0", "cannot be pulled", oldNginx}, keepsPods: true,
			do: func(t testing.TB) { image(t, "nginx:0.0.0") }, undo: func(t testing.TB) { image(t, oldNginx) },
		},
		{
			name: "a configuration that nginx refuses", words: []string{`unknown directive "lisen"`},
			do: func(t testing.TB) { config(t, "server { lisen 80; }") }, undo: func(t testing.TB) { config(t, goodConfig) },
		},
	}
	for _, step := range steps {
		stall.Judge(t, step.name, func(t testing.TB) {
			before := strings.Join(podNames(t, ns, "steady"), " ")
			same := func() {
				t.Helper()
				if now := strings.Join(podNames(t, ns, "steady"), " "); now != before {
					t.Errorf("the pods were %s, and are now %s", before, now)
				}
			}
			step.do(t)
			message(t, "RolledBack", step.words...)
			same()
			time.Sleep(15 * time.Second)
			same() // it is not tried again
			step.undo(t)
			message(t, "Ready")
			if step.keepsPods {
				same()
			}
			l.judge(t)
		}, func(t testing.TB) {
			step.undo(t)
			message(t, "Ready")
			l.next()
		})
	}
}
