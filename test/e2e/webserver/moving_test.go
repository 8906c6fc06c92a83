//go:build e2e

package webserver

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestAloneMoveWebServer follows docs/moving/webserver.md word for word, under load: until the change at the page's
// end no request fails and no pod restarts.
func TestAloneMoveWebServer(t *testing.T) {
	ns := e2e.NewNamespace(t)
	commands := e2e.GuideCommands(t, "moving/webserver.md", "", 6)
	run := func(n int, want ...string) {
		t.Helper()
		out := e2e.RunGuide(t, ns, commands[n])
		for _, words := range want {
			if !strings.Contains(out, words) {
				t.Errorf("it does not print %q", words)
			}
		}
	}
	get := func(object, path string) string {
		return e2e.Kubectl(t, "get", object, "-n", ns, "-o", "jsonpath="+path)
	}
	run(0)
	url := "http://" + net.JoinHostPort(get("pods", "{.items[0].status.hostIP}"), get("service/web", "{.spec.ports[0].nodePort}"))
	pods := func() string {
		return get("pods", `{range .items[*]}{.metadata.name} {.status.containerStatuses[0].restartCount} {end}`)
	}
	before, address, ingress := pods(), get("service/web", "{.spec.clusterIP} {.spec.ports[0].nodePort}"), get("ingress/web", "{.metadata.resourceVersion}")
	load := requests(t, url)
	run(1, `{"app":"web"}`, "NodePort")
	run(2, "spec.replicas must be 2")
	if owner := get("deployment/web", "{.metadata.ownerReferences}"); owner != "" {
		t.Errorf("what was refused has the owner %s", owner)
	}
	run(3)
	run(4, "They do not drain", "spec.containers[webserver].lifecycle")
	time.Sleep(5 * time.Second)
	load(t)
	if after := pods(); after != before {
		t.Errorf("the pods were %s, and are %s", before, after)
	}
	run(5, "nginx:1.26.3")
	if now := get("service/web", "{.spec.clusterIP} {.spec.ports[0].nodePort}"); now != address {
		t.Errorf("the Service had %s, and has %s", address, now)
	}
	if now := get("ingress/web", "{.metadata.resourceVersion}"); now != ingress {
		t.Error("the Ingress was changed")
	}
	if names := get("deployment/web", "{.spec.template.spec.containers[*].name}"); names != serverName {
		t.Errorf("the pods have the containers %s", names)
	}
	pace.Eventually(t, 10*time.Second, func() error {
		if body, err := page(url); err != nil || !strings.Contains(body, "Welcome to nginx") {
			return fmt.Errorf("the page is %q: %w", body, err)
		}
		return nil
	})
}

// serverName is the server's container in a WebServer's pods.
const serverName = "webserver"

// requests sends 100 a second, each over a connection of its own, until the returned function judges them.
func requests(t *testing.T, url string) (judge func(testing.TB)) {
	t.Helper()
	for answered := 0; answered < 20; answered++ { // the node's rules may be a moment behind
		pace.Eventually(t, 30*time.Second, func() error { _, err := page(url); return err })
	}
	var answered, failed atomic.Int64
	var first atomic.Value
	var all sync.WaitGroup
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop); all.Wait() })
	t.Cleanup(end)
	all.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				all.Go(func() {
					if _, err := page(url); err != nil {
						failed.Add(1)
						first.CompareAndSwap(nil, err.Error())
						return
					}
					answered.Add(1)
				})
			}
		}
	})
	return func(t testing.TB) {
		t.Helper()
		end()
		t.Logf("%d requests answered, %d failed", answered.Load(), failed.Load())
		if failed.Load() > 0 || answered.Load() == 0 {
			t.Errorf("the first failure: %v", first.Load())
		}
	}
}

// TestLeaveWebServer: without its WebServer, what it has made runs on; and a new one of its name takes it back.
func TestLeaveWebServer(t *testing.T) {
	ns := e2e.NewNamespace(t)
	apply := func() {
		e2e.Apply(t, ns, "apiVersion: my.domain/v1\nkind: WebServer\nmetadata: {name: web}\nspec: {image: \""+oldNginx+"\", replicas: 2}\n")
		webURL(t, ns, "web")
	}
	apply()
	e2e.LeavesByGuide(t, ns, "From a WebServer", "deployments,services,poddisruptionbudgets", 3)
	before := strings.Join(podNames(t, ns, "web"), " ")
	apply()
	if after := strings.Join(podNames(t, ns, "web"), " "); after != before {
		t.Errorf("the pods were %s, and are %s", before, after)
	}
}
