//go:build e2e

package memcached

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestMemcachedRotates: new users and a new certificate reach the servers
// without a restart; bad ones do not.
func TestMemcachedRotates(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	users := func(lines ...string) {
		t.Helper()
		e2e.Apply(t, ns, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: who}, stringData: {users: %q}}", strings.Join(lines, "\n")+"\n"))
	}
	certificate := func(name string) {
		t.Helper()
		cert, key := e2e.Certificate(t, name)
		manifest, err := e2e.TryKubectl("", "create", "secret", "generic", "certificate", "-n", ns, "--from-file=tls.crt="+cert, "--from-file=tls.key="+key, "--dry-run=client", "-o", "yaml")
		if err != nil {
			t.Fatal(err)
		}
		e2e.Apply(t, ns, manifest)
	}
	reason := func(want string) {
		t.Helper()
		e2e.Kubectl(t, "wait", "-n", ns, `--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=`+want, e2e.Patience, "memcached/pool")
	}
	e2e.Apply(t, ns, `
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: pool}
spec: {identity: Stable, auth: {secretName: who}, tls: {secretName: certificate}}
`)
	reason("SecretNotFound")
	users("shop:one")
	certificate("one.example.com")
	reason("Ready")
	first := serverPods(t, ns, "pool")["pool-0"]
	address := exposed(t, ns, "pool-0")

	var served string
	encrypted := &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
		served = s.PeerCertificates[0].Subject.CommonName
		return nil
	}}
	logIn := func(password string) error {
		m, err := dialMemcached(address, encrypted)
		if err != nil {
			return err
		}
		defer m.Close()
		return m.logIn("shop", password)
	}
	serves := func(password, name string) {
		t.Helper()
		began := time.Now()
		pace.Eventually(t, 2*time.Minute, func() error {
			if err := logIn(password); err != nil {
				return err
			}
			if served != name {
				return fmt.Errorf("the certificate is for %s, want %s", served, name)
			}
			return nil
		})
		t.Logf("%s and %s are served after %v", password, name, time.Since(began).Round(time.Millisecond))
	}
	serves("one", "one.example.com")
	open := mustDial(t, address, encrypted)
	if err := open.logIn("shop", "one"); err != nil {
		t.Fatal(err)
	}

	users("shop:two")
	serves("two", "one.example.com")
	if err := logIn("one"); err == nil {
		t.Error("the old password still serves")
	}
	certificate("two.example.com")
	serves("two", "two.example.com")

	users(strings.Split(strings.Repeat("user:x ", 8)+"shop:nine", " ")...)
	reason("InvalidSecret")
	users("no colon")
	reason("InvalidSecret")
	serves("two", "two.example.com")
	users("shop:two")
	reason("Ready")

	if answer, err := open.ask("get key"); err != nil || answer != "END" {
		t.Errorf("the open connection answers %q (%v)", answer, err)
	}
	now := serverPods(t, ns, "pool")["pool-0"]
	if now.UID != first.UID || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Error(errors.New("the server was restarted"))
	}
}

// TestMemcachedTLSConnections: as many idle connections with TLS as a server allows do not cost it its life, also in a
// cache that is small beside them. It listens at each address of its pod, of which there are two in a cluster of both
// families.
func TestMemcachedTLSConnections(t *testing.T) {
	const allowed, idle = 8000, 7900
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	cert, key := e2e.Certificate(t, "idle.example.com")
	e2e.Kubectl(t, "create", "secret", "generic", "certificate", "-n", ns, "--from-file=tls.crt="+cert, "--from-file=tls.key="+key)
	e2e.Apply(t, ns, fmt.Sprintf(`
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: pool}
spec: {identity: Stable, maxConnections: %d, tls: {secretName: certificate}}
`, allowed))
	e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/pool")
	address, encrypted := exposed(t, ns, "pool-0"), &tls.Config{InsecureSkipVerify: true}
	first := mustDial(t, address, encrypted)
	for n := range idle {
		m, err := dialMemcached(address, encrypted)
		if err == nil {
			t.Cleanup(func() { _ = m.Close() })
			_, err = m.ask("version")
		}
		if err != nil {
			t.Fatalf("connection %d of %d: %v", n+1, allowed, err)
		}
	}
	pod := serverPods(t, ns, "pool")["pool-0"]
	if answer, err := first.ask("get key"); err != nil || answer != "END" || pod.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("beside %d idle connections the first one answers %q (%v), and the server was restarted %d times", idle, answer, err, pod.Status.ContainerStatuses[0].RestartCount)
	}
	for _, ip := range pod.Status.PodIPs {
		e2e.Kubectl(t, "exec", "-n", ns, "pool-0", "-c", "memcached", "--", "sh", "-c", "nc "+ip.IP+" 11211 </dev/null")
	}
}
