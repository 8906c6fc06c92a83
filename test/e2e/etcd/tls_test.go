//go:build e2e

package etcd

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/pace"
)

// TestEtcdCertificates: with generated certificates the CA is replaced without a hand on a pod,
// and without losing quorum: its Secret is deleted, which is the quickest way to need another one.
func TestEtcdCertificates(t *testing.T) {
	e := create(t, "size: 3", "TLS: {generated: {}}")
	e.putSecurely("/key", "before")
	before, pods := e.issuer(), e.pods()
	if out, err := e.etcdctl("--endpoints=http://127.0.0.1:2379", "get", "/key"); err == nil {
		t.Errorf("without TLS etcd answers %s", out)
	}
	e.kubectl("delete", "secret", "example-ca-tls")
	began := time.Now()
	pace.Eventually(t, 3*time.Minute, func() error {
		if e.issuer().Equal(before) {
			return fmt.Errorf("the certificates are those of the first CA")
		}
		ec, err := e.get()
		if err != nil {
			return err
		}
		return isReady(ec)
	})
	t.Logf("another CA signs after %.1f s", time.Since(began).Seconds())
	for name, pod := range e.pods() {
		if pods[name].UID != pod.UID {
			t.Errorf("pod %s was replaced: without a volume its data is lost then", name)
		}
	}
	time.Sleep(time.Second)
	e.putSecurely("/key", "after")
	e.kubectl("scale", "etcd/example", "--replicas=4")
	e.ready()
	e.putSecurely("/key", "with a fourth member")
}

// issuer is the CA that has signed the members' certificates.
func (e etcd) issuer() *x509.Certificate {
	e.t.Helper()
	var secret corev1.Secret
	if err := cluster.Get(context.Background(), client.ObjectKey{Namespace: e.namespace, Name: "example-peer-tls"}, &secret); err != nil {
		e.t.Fatal(err)
	}
	leaf := certificates(e.t, secret.Data["peer.crt"])[0]
	for _, ca := range certificates(e.t, secret.Data["peer-ca.crt"]) {
		if leaf.CheckSignatureFrom(ca) == nil {
			return ca
		}
	}
	e.t.Fatal("no CA has signed the members' certificate")
	return nil
}

func certificates(t *testing.T, data []byte) []*x509.Certificate {
	t.Helper()
	var all []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cert)
	}
	return all
}

// putSecurely puts a key with the certificate that a member has in its pod.
func (e etcd) putSecurely(key, value string) {
	e.t.Helper()
	const files = "/etc/etcdtls/member/server-tls/server"
	pace.Eventually(e.t, time.Minute, func() error {
		_, err := e.etcdctl("--endpoints=https://127.0.0.1:2379", "--cacert="+files+"-ca.crt", "--cert="+files+".crt", "--key="+files+".key", "put", key, value)
		return err
	})
}
