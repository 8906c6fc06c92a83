//go:build e2e

package webserver

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
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
	answered, failed atomic.Int64
	mu               sync.Mutex
	failures         []string
	namespace        string
	atFirst          string // what the pods and endpoints were like at the first failure
	stop             chan struct{}
	requests         sync.WaitGroup
	ticker           sync.WaitGroup
}

func startLoad(t *testing.T, namespace, name string) *load {
	t.Helper()
	url := webURL(t, namespace, name)
	// Ready is about pods: that the node passes requests on to them takes its
	// kube-proxy a moment more, once.
	for answered := 0; answered < 20; answered++ {
		pace.Eventually(t, 10*time.Second, func() error { _, err := page(url); return err })
		time.Sleep(50 * time.Millisecond)
	}
	l := &load{namespace: namespace, stop: make(chan struct{})}
	fresh := &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	kept := &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	l.ticker.Go(func() {
		tick := time.NewTicker(time.Second / requestRate)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-l.stop:
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
			l.requests.Go(func() { l.request(client, url+path, size) })
		}
	})
	return l
}

func (l *load) request(client *http.Client, url string, size int) {
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
		l.answered.Add(1)
		return
	}
	failure := fmt.Sprintf("%s after %v: %v", began.Format("15:04:05.000"), time.Since(began).Round(time.Millisecond), err)
	if l.failed.Add(1) == 1 {
		l.atFirst = l.look()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, failure)
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

// end stops the load and fails the test for every request that failed.
func (l *load) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.ticker.Wait()
	l.requests.Wait()
	t.Logf("%d requests answered, %d failed", l.answered.Load(), l.failed.Load())
	if l.failed.Load() > 0 {
		t.Errorf("requests failed:\n%s\nat the first of them:\n%s", strings.Join(l.failures[:min(len(l.failures), 20)], "\n"), l.atFirst)
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

// TestWebServerLosesNoRequest: 200 requests a second through the NodePort, and
// everything that one does to a web server.
func TestWebServerLosesNoRequest(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	e2e.Apply(t, ns, fmt.Sprintf(slowConfig, strings.Repeat("x", slowSize)))
	e2e.Apply(t, ns, `
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: busy}
spec:
  image: `+oldNginx+`
  replicas: 1
  config: {configMap: slow}
  content: {configMap: files}
  rollout: {drainSeconds: `+fmt.Sprint(pace.Seconds(15))+`} # the only pod's replacement has to start meanwhile
`)
	l := startLoad(t, ns, "busy")
	set := func(patch string) {
		e2e.Kubectl(t, "patch", "webserver", "busy", "-n", ns, "--type=merge", "-p", patch)
	}
	steps := []struct {
		name     string
		replicas int
		do       func()
	}{
		{"another image, with one pod", 1, func() { set(`{"spec":{"image":"` + newNginx + `"}}`) }},
		{"the only pod deleted", 1, func() { e2e.Kubectl(t, "delete", "pod", "-n", ns, "--wait=false", podNames(t, ns, "busy")[0]) }},
		{"three pods, and less time to drain", 3, func() { set(fmt.Sprintf(`{"spec":{"replicas":3,"rollout":{"drainSeconds":%d}}}`, pace.Seconds(5))) }},
		{"a pod deleted", 3, func() { e2e.Kubectl(t, "delete", "pod", "-n", ns, "--wait=false", podNames(t, ns, "busy")[0]) }},
		{"another page", 3, func() {
			e2e.Kubectl(t, "patch", "configmap", "files", "-n", ns, "--type=merge", "-p", `{"data":{"index.html":"<h1>Hello again</h1>"}}`)
		}},
		{"another port", 3, func() { // where only the new pods listen
			config, _, _ := strings.Cut(slowConfig, "---")
			e2e.Apply(t, ns, strings.NewReplacer("name: slow", "name: moved", "listen 80", "listen 8080").Replace(config))
			set(`{"spec":{"port":8080,"config":{"configMap":"moved"}}}`)
		}},
		{"one pod", 1, func() { set(`{"spec":{"replicas":1}}`) }},
	}
	time.Sleep(2 * time.Second)
	for _, step := range steps {
		failed := l.failed.Load()
		generation := strings.Join(podNames(t, ns, "busy"), " ")
		step.do()
		pace.Eventually(t, 2*time.Minute, func() error {
			if strings.Join(podNames(t, ns, "busy"), " ") == generation {
				return fmt.Errorf("%s: nothing has happened", step.name)
			}
			return nil
		})
		wantDeployment(t, ns, "busy", step.replicas)
		e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "webserver/busy")
		wantNoneLeaving(t, ns, "busy")
		t.Logf("%s: %d answered so far, %d failed in this step", step.name, l.answered.Load(), l.failed.Load()-failed)
	}
	l.end(t)
}

// wantNoneLeaving waits until all pods that were to go are gone. While no pod is ready,
// requests go to all that are leaving, also to the one that ends first.
func wantNoneLeaving(t *testing.T, namespace, name string) {
	t.Helper()
	pace.Eventually(t, 2*time.Minute, func() error {
		if left := e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", "webserver_cr="+name,
			"-o", `go-template={{range .items}}{{if .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}`); left != "" {
			return fmt.Errorf("pods that are leaving: %s", left)
		}
		return nil
	})
}

// TestWebServerRollsBack: an image that cannot be had, and a configuration that
// nginx refuses, are put back, while all requests are answered.
func TestWebServerRollsBack(t *testing.T) {
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
	message := func(reason string, words ...string) {
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
	pods := strings.Join(podNames(t, ns, "steady"), " ")
	same := func() {
		t.Helper()
		if now := strings.Join(podNames(t, ns, "steady"), " "); now != pods {
			t.Errorf("the pods were %s, and are now %s", pods, now)
		}
	}

	e2e.Kubectl(t, "patch", "webserver", "steady", "-n", ns, "--type=merge", "-p", `{"spec":{"image":"nginx:0.0.0"}}`)
	message("RolledBack", "nginx:0.0.0", "cannot be pulled", oldNginx)
	same()
	e2e.Kubectl(t, "patch", "webserver", "steady", "-n", ns, "--type=merge", "-p", `{"spec":{"image":"`+oldNginx+`"}}`)
	message("Ready")
	same()

	e2e.Kubectl(t, "patch", "configmap", "slow", "-n", ns, "--type=merge", "-p", `{"data":{"default.conf":"server { lisen 80; }"}}`)
	message("RolledBack", `unknown directive "lisen"`)
	same()
	time.Sleep(15 * time.Second)
	same() // it is not tried again
	e2e.Kubectl(t, "patch", "configmap", "slow", "-n", ns, "--type=merge", "-p", `{"data":{"default.conf":"server { listen 80; root /usr/share/nginx/html; location = /slow.txt { limit_rate 10k; } }"}}`)
	message("Ready")
	l.end(t)
}
