//go:build e2e

package webserver

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestWebServerServesTLS: HTTPS with the certificate of a Secret, and with a
// new one when the Secret changes; a pair that does not fit never serves.
func TestWebServerServesTLS(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	e2e.Apply(t, ns, `
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: secure}
spec:
  image: `+newNginx+`
  tls: {secretName: certificate}
`)
	e2e.Kubectl(t, "wait", "-n", ns, "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=SecretNotFound", e2e.Patience, "webserver/secure")
	store := func(cert, key string) {
		manifest, err := e2e.TryKubectl("", "create", "secret", "generic", "certificate", "-n", ns, "--type=kubernetes.io/tls",
			"--from-file=tls.crt="+cert, "--from-file=tls.key="+key, "--dry-run=client", "-o", "yaml")
		if err != nil {
			t.Fatal(err)
		}
		e2e.Apply(t, ns, manifest)
	}
	served := func(name string) {
		t.Helper()
		at, err := url.Parse(webURL(t, ns, "secure"))
		if err != nil {
			t.Fatal(err)
		}
		port := e2e.Kubectl(t, "get", "service", "secure-service", "-n", ns, "-o", `jsonpath={.spec.ports[?(@.name=="https")].nodePort}`)
		pace.Eventually(t, 2*time.Minute, func() error {
			conn, err := tls.Dial("tcp", net.JoinHostPort(at.Hostname(), port), &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				return err
			}
			defer conn.Close()
			if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != name {
				return fmt.Errorf("the certificate is for %s, want %s", got, name)
			}
			return nil
		})
	}
	cert, key := e2e.Certificate(t, "one.example.com")
	store(cert, key)
	served("one.example.com")
	newCert, newKey := e2e.Certificate(t, "two.example.com")
	store(newCert, key)
	e2e.Kubectl(t, "wait", "-n", ns, "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=InvalidSecret", e2e.Patience, "webserver/secure")
	ready := e2e.Kubectl(t, "get", "webserver", "secure", "-n", ns, "-o", "jsonpath={.status.readyReplicas}")
	if ready != "1" {
		t.Errorf("with a pair that does not fit, %s pods are ready, want 1", ready)
	}
	store(newCert, newKey)
	served("two.example.com")
}
