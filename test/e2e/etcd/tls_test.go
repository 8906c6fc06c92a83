//go:build e2e

package etcd

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/operators/etcd/pki"
	"example.com/fairlead/test/e2e"
)

// TestEtcdCertificates: with generated certificates the CA is replaced without a hand on a pod,
// and without losing quorum: its Secret is deleted, which is the quickest way to need another one.
// Members are restarted in their pods for that, also where only images of one registry are allowed.
func TestEtcdCertificates(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 3", "TLS: {generated: {}}")
	e.allowImages("quay.io/coreos/etcd:")
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
	ca, err := e.findIssuer()
	if err != nil {
		e.t.Fatal(err)
	}
	return ca
}

func (e etcd) findIssuer() (*x509.Certificate, error) {
	data, err := e.secret("example-peer-tls")
	if err != nil {
		return nil, err
	}
	leaf, err := certificates(data["peer.crt"])
	if err != nil {
		return nil, err
	}
	trusted, err := certificates(data["peer-ca.crt"])
	if err != nil {
		return nil, err
	}
	for _, ca := range trusted {
		if leaf[0].CheckSignatureFrom(ca) == nil {
			return ca, nil
		}
	}
	return nil, errors.New("no CA has signed the members' certificate")
}

// secret is the data of a Secret.
func (e etcd) secret(name string) (map[string][]byte, error) {
	var secret corev1.Secret
	err := cluster.Get(context.Background(), client.ObjectKey{Namespace: e.namespace, Name: name}, &secret)
	return secret.Data, err
}

// certificates are those of a file, of which there is one at least.
func certificates(data []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no certificate")
	}
	return all, nil
}

// putSecurely puts a key with the certificate that a member has in its pod.
func (e etcd) putSecurely(key, value string) {
	e.t.Helper()
	pace.Eventually(e.t, time.Minute, func() error {
		_, err := e.asMember("put", key, value)
		return err
	})
}

// asMember runs etcdctl in a member's pod, with the certificate that is there, if there is one.
func (e etcd) asMember(args ...string) (string, error) {
	files := map[string]string{}
	for _, pod := range e.pods() {
		for _, v := range pod.Spec.Containers[0].Env {
			files[v.Name] = v.Value
		}
	}
	if files["ETCD_TRUSTED_CA_FILE"] == "" {
		return e.etcdctl(args...)
	}
	return e.etcdctl(append([]string{"--endpoints=https://127.0.0.1:2379", "--cacert=" + files["ETCD_TRUSTED_CA_FILE"],
		"--cert=" + files["ETCD_CERT_FILE"], "--key=" + files["ETCD_KEY_FILE"]}, args...)...)
}

// TestEtcdOwnCertificates: the user's Secrets, with the keys that cert-manager writes, are renewed
// under a cluster without a restart; one that lacks a key is reported, and the cluster serves on. All of them
// are replaced at once by those of another CA, and the members are restarted, with what they have.
func TestEtcdOwnCertificates(t *testing.T) {
	t.Parallel()
	e := etcd{t, e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")}
	ca, err := pki.MakeCA(rand.Reader, "our CA", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	e.issue(ca)
	e.apply("size: 3", "TLS: {static: {member: {peerSecret: peers, serverSecret: servers}, operatorSecret: clients}}")
	e.ready()
	e.putSecurely("/key", "with the first certificates")
	pods := e.pods()
	e.issue(ca)
	e.kubectl("delete", "pod", e.members()[0]) // the next member begins with the new ones
	e.ready()
	e.putSecurely("/key", "with the second certificates")

	e.kubectl("patch", "secret", "servers", "--type=json", "-p", `[{"op":"remove","path":"/data/tls.key"}]`)
	pace.Eventually(t, time.Minute, func() error {
		ec, err := e.get()
		if err != nil {
			return err
		}
		for _, c := range ec.Status.Conditions {
			if c.Type == "Stalled" && c.Status == "True" && c.Reason == "InvalidSecret" && strings.Contains(c.Message, "tls.key") {
				return nil
			}
		}
		return fmt.Errorf("the Secret is not reported: %s", status(ec))
	})
	e.putSecurely("/key", "although a key is missing")
	e.issue(ca)
	e.ready()
	same := 0
	for name, pod := range e.pods() {
		if pods[name].UID == pod.UID {
			same++
		}
	}
	if same != 2 {
		t.Errorf("%d members kept their pods, want 2: no certificate is worth a restart", same)
	}

	another, err := pki.MakeCA(rand.Reader, "another CA", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	const trusts = "etcd.database.coreos.com/ca"
	pods = e.pods()
	e.issue(another)
	began := time.Now()
	pace.Eventually(t, 5*time.Minute, func() error {
		for name, pod := range e.pods() {
			if pod.UID != pods[name].UID || pod.Annotations[trusts] == pods[name].Annotations[trusts] {
				return fmt.Errorf("pod %s was replaced, or has not started with the other CA", name)
			}
		}
		ec, err := e.get()
		if err != nil {
			return err
		}
		return isReady(ec)
	})
	t.Logf("all Secrets were replaced by those of another CA; the cluster was whole again after %.1f s", time.Since(began).Seconds())
	e.putSecurely("/key", "with another CA")
}

// issue writes the Secrets of a cluster as cert-manager does.
func (e etcd) issue(ca pki.KeyPair) {
	e.t.Helper()
	for name, role := range map[string]pki.Role{"peers": pki.Peer, "servers": pki.Server, "clients": pki.Client} {
		e2e.Issue(e.t, e.namespace, name, pki.CertManager, ca, role, pki.Names(role, "example", e.namespace, ""), time.Hour)
	}
}
