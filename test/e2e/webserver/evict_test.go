//go:build e2e

package webserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestEvictUnready: pods that are not ready do not hold up a drain, also where fewer are ready than minAvailable wants.
// One that serves stays.
func TestEvictUnready(t *testing.T) {
	ns := e2e.NewNamespace(t)
	e2e.Apply(t, ns, `
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: web}
spec:
  image: "`+oldNginx+`"
  replicas: 2
  disruption: {minAvailable: 1}
  probes: {readiness: {exec: {command: [cat, /tmp/ready]}, periodSeconds: 1}}
`)
	get := func(what, path string) string { return e2e.Kubectl(t, "get", what, "-n", ns, "-o", "jsonpath="+path) }
	budget := func(ready, all string) {
		t.Helper()
		pace.Eventually(t, 2*time.Minute, func() error {
			if got := get("pdb/web", "{.status.currentHealthy} of {.status.expectedPods}"); got != ready+" of "+all {
				return fmt.Errorf("the budget counts %s ready pods, want %s of %s", got, ready, all)
			}
			return nil
		})
	}
	run := func() []string {
		t.Helper()
		var pods []string
		pace.Eventually(t, 2*time.Minute, func() error {
			pods = strings.Fields(e2e.Kubectl(t, "get", "pods", "-n", ns, "-l", "webserver_cr=web", "--field-selector=status.phase=Running",
				"-o", "go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}"))
			if len(pods) != 2 {
				return fmt.Errorf("these pods run: %v, want 2", pods)
			}
			return nil
		})
		return pods
	}

	for _, pod := range run() {
		if out, err := e2e.Evict(ns, pod); err != nil {
			t.Fatalf("while no pod is ready: %v %s", err, out)
		}
	}
	pods := run()
	e2e.Kubectl(t, "exec", pods[0], "-n", ns, "-c", "webserver", "--", "touch", "/tmp/ready")
	budget("1", "2")
	if out, err := e2e.Evict(ns, pods[0]); err == nil || !strings.Contains(out, "disruption budget") {
		t.Errorf("the only pod that is ready may go: %s", out)
	}
	if out, err := e2e.Evict(ns, pods[1]); err != nil {
		t.Errorf("a pod that is not ready: %v %s", err, out)
	}
}

// TestEndedPodsRollBack: a revision that its node does not let run is rolled back, and the pods before it stay.
func TestEndedPodsRollBack(t *testing.T) {
	ns := e2e.NewNamespace(t)
	e2e.Apply(t, ns, `
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: web}
spec: {image: "`+oldNginx+`", replicas: 2}
`)
	get := func() string {
		return e2e.Kubectl(t, "get", "webserver/web", "-n", ns, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}: {.status.conditions[?(@.type=="Ready")].message}`)
	}
	says := func(words ...string) {
		t.Helper()
		pace.Eventually(t, 2*time.Minute, func() error {
			got := get()
			for _, word := range words {
				if !strings.Contains(got, word) {
					return fmt.Errorf("the condition Ready says %q, want %q", got, word)
				}
			}
			return nil
		})
	}
	says("Ready: ")
	before := podNames(t, ns, "web")
	e2e.Kubectl(t, "patch", "webserver/web", "-n", ns, "--type=merge", "-p",
		`{"spec":{"podTemplate":{"spec":{"securityContext":{"sysctls":[{"name":"net.core.somaxconn","value":"1024"}]}}}}}`)
	says("RolledBack: ", "PodsEnded: ", "SysctlForbidden")
	time.Sleep(5 * time.Second) // no pod is made any more
	after := e2e.Kubectl(t, "get", "pods", "-n", ns, "-l", "webserver_cr=web", "-o", "name")
	time.Sleep(5 * time.Second)
	if now := e2e.Kubectl(t, "get", "pods", "-n", ns, "-l", "webserver_cr=web", "-o", "name"); now != after {
		t.Errorf("the pods were\n%s\nand are now\n%s", after, now)
	}
	for _, pod := range before {
		if !strings.Contains(after, pod) {
			t.Errorf("pod %s is gone; there are\n%s", pod, after)
		}
	}
}
