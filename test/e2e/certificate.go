//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/fairlead/operators/etcd/pki"
)

// Certificate writes a certificate and its key for a name, and returns the
// files.
func Certificate(t testing.TB, name string) (certFile, keyFile string) {
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

// Issue writes a Secret with a certificate of a CA, under the keys that files are.
func Issue(t testing.TB, namespace, secret string, files pki.Files, ca pki.KeyPair, role pki.Role, hosts []string, validFor time.Duration) {
	t.Helper()
	made, err := ca.Issue(rand.Reader, role, secret, hosts, time.Now(), validFor)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	Apply(t, namespace, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ndata: {%s: %s, %s: %s, %s: %s}\n",
		secret, files.Cert, encode(made.Cert), files.Key, encode(made.Key), files.CA, encode(ca.Cert)))
}
