//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// aCertificate writes a certificate and its key for a name, and returns the
// files.
func aCertificate(t *testing.T, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(file, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("tls.crt", "CERTIFICATE", cert), write("tls.key", "PRIVATE KEY", der)
}

// TestWebServerServesTLS: HTTPS with the certificate of a Secret, and with a
// new one when the Secret changes; a pair that does not fit never serves.
func TestWebServerServesTLS(t *testing.T) {
	needImages(t, newNginx)
	ns := newNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	apply(t, ns, `
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: secure}
spec:
  image: `+newNginx+`
  tls: {secretName: certificate}
`)
	kubectl(t, "wait", "-n", ns, "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=SecretNotFound", "--timeout=20s", "webserver/secure")
	store := func(cert, key string) {
		manifest, err := tryKubectl("", "create", "secret", "generic", "certificate", "-n", ns, "--type=kubernetes.io/tls",
			"--from-file=tls.crt="+cert, "--from-file=tls.key="+key, "--dry-run=client", "-o", "yaml")
		if err != nil {
			t.Fatal(err)
		}
		apply(t, ns, manifest)
	}
	served := func(name string) {
		t.Helper()
		at, err := url.Parse(webURL(t, ns, "secure"))
		if err != nil {
			t.Fatal(err)
		}
		port := kubectl(t, "get", "service", "secure-service", "-n", ns, "-o", `jsonpath={.spec.ports[?(@.name=="https")].nodePort}`)
		eventually(t, 2*time.Minute, func() error {
			conn, err := tls.Dial("tcp", at.Hostname()+":"+port, &tls.Config{InsecureSkipVerify: true})
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
	cert, key := aCertificate(t, "one.example.com")
	store(cert, key)
	served("one.example.com")
	newCert, newKey := aCertificate(t, "two.example.com")
	store(newCert, key)
	kubectl(t, "wait", "-n", ns, "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=InvalidSecret", "--timeout=20s", "webserver/secure")
	ready := kubectl(t, "get", "webserver", "secure", "-n", ns, "-o", "jsonpath={.status.readyReplicas}")
	if ready != "1" {
		t.Errorf("with a pair that does not fit, %s pods are ready, want 1", ready)
	}
	store(newCert, newKey)
	served("two.example.com")
}
