//go:build e2e

package memcached

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestKubectlFairleadMemcached plans changes, carries one of them out, and flushes.
func TestKubectlFairleadMemcached(t *testing.T) {
	ns := e2e.NewNamespace(t)
	manifest := func(more string) string {
		return "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: sessions}\n" +
			"spec: {size: 2, version: 1.6.18, identity: Stable, upgrade: Warm" + more + "}\n"
	}
	e2e.Apply(t, ns, manifest(""))
	ready := func() {
		e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/sessions")
	}
	ready()
	plan := func(want string, args ...string) string {
		return e2e.Fairlead(t, ns, want, append([]string{"memcached", "plan", "sessions"}, args...)...)
	}
	var servers []*mcClient
	for i := range 2 {
		m := mustDial(t, exposed(t, ns, fmt.Sprintf("sessions-%d", i)), nil)
		if err := m.fill(50); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, m)
	}
	plan("0 of 100 items", "--version", "1.6.38")
	plan("50 items", "--size", "3")
	plan("sessions-1   goes, with its items; 50 items\nat stake       50 of 100 items\n", "--size", "1")
	plan("100 of 100 items", "--memory", "128Mi")
	out := plan("0 of 100 items", "--version", "1.6.18")
	if !strings.Contains(out, "no server is changed") {
		t.Errorf("a change of nothing:\n%s", out)
	}
	if got := e2e.Kubectl(t, "get", "memcached", "sessions", "-n", ns, "-o", "jsonpath={.metadata.generation}"); got != "1" {
		t.Errorf("a plan has changed the Memcached: generation %s", got)
	}
	// What was planned is what happens.
	announced := e2e.Fairlead(t, ns, "Cold: ", "memcached", "plan", "sessions", "--memory", "128Mi")
	e2e.FairleadRefuses(t, ns, "100 items are lost", "memcached", "flush", "sessions", "--gradually", "--over=2s")
	e2e.Fairlead(t, ns, " flushed (dry run), the last server at ", "memcached", "flush", "sessions", "--gradually", "--over=2s", "--dry-run=client")
	e2e.Fairlead(t, ns, " flushed, the last server at ", "memcached", "flush", "sessions", "--gradually", "--over=2s", "--yes")
	pace.Eventually(t, time.Minute, func() error {
		for i, m := range servers {
			hits, err := m.hits(50)
			if err == nil && hits > 0 {
				err = fmt.Errorf("has %d items still", hits)
			}
			if err != nil {
				return fmt.Errorf("sessions-%d: %w", i, err)
			}
		}
		return nil
	})
	e2e.Kubectl(t, "patch", "memcached", "sessions", "-n", ns, "--type=merge", "-p", `{"spec":{"memory":"128Mi"}}`)
	pace.Eventually(t, time.Minute, func() error {
		message := e2e.Kubectl(t, "get", "memcached", "sessions", "-n", ns, "-o", "jsonpath={.status.upgrade.message}")
		if message == "" || !strings.Contains(announced, message) {
			return fmt.Errorf("status says %q, and the plan was\n%s", message, announced)
		}
		return nil
	})
}

// TestKubectlFairleadMemcachedSecrets asks servers that want a password and speak TLS.
func TestKubectlFairleadMemcachedSecrets(t *testing.T) {
	ns := e2e.NewNamespace(t)
	cert, key := e2e.Certificate(t, "sessions.example.com")
	e2e.Kubectl(t, "create", "secret", "generic", "certificate", "-n", ns, "--from-file=tls.crt="+cert, "--from-file=tls.key="+key)
	e2e.Kubectl(t, "create", "secret", "generic", "who", "-n", ns, "--from-literal=users=shop:one\n")
	e2e.Apply(t, ns, "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: pool}\n"+
		"spec: {identity: Stable, auth: {secretName: who}, tls: {secretName: certificate}}\n")
	e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/pool")
	e2e.Fairlead(t, ns, "is replaced, and starts empty; 0 items", "memcached", "plan", "pool", "--image=memcached:1.6.18")
	e2e.Fairlead(t, ns, " flushed, the last server at ", "memcached", "flush", "pool", "--gradually", "--yes")
}
