package certificates

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/pki"
)

var midday = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// anEtcdOfSecrets is one whose certificates are generated.
func anEtcdOfSecrets() *v1beta2.EtcdCluster {
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "example", Namespace: "ns", UID: "uid-of-example", Generation: 1},
		Spec:       v1beta2.EtcdClusterSpec{Size: 3, TLS: &v1beta2.TLSPolicy{Generated: &v1beta2.GeneratedTLS{}}},
	}
}

// vault is where generated Secrets are kept in a test.
type vault struct {
	t       *testing.T
	ec      *v1beta2.EtcdCluster
	secrets map[string]*corev1.Secret
	trusted *x509.Certificate // the CA that members have started with
	newest  *x509.Certificate // the CA that they are to have started with
	writes  int
}

func newVault(t *testing.T) *vault {
	return &vault{t: t, ec: anEtcdOfSecrets(), secrets: map[string]*corev1.Secret{}}
}

// at writes what is to be written at a time, until nothing is, and says when to look again.
func (v *vault) at(now time.Time) time.Time {
	v.t.Helper()
	for range 10 {
		g := generator{ec: v.ec, clusterDomain: "example.internal", now: now, random: rand.Reader,
			read: func(name string) (*corev1.Secret, error) {
				if s := v.secrets[name]; s != nil {
					return s.DeepCopy(), nil
				}
				return &corev1.Secret{}, nil
			},
			isTrusted: func(ca *x509.Certificate) bool { return v.trusted == nil || v.trusted.Equal(ca) },
		}
		data, stale, err := g.generate()
		if err != nil {
			v.t.Fatal(err)
		}
		if len(stale) == 0 {
			for i, u := range objects.SecretsOf(v.ec) {
				if _, err := pki.Check(u.Role, data[i], hostsOf(v.ec, u.Role), now); err != nil {
					v.t.Errorf("at %s: %s: %v", now, u.Name, err)
				}
			}
			v.newest = g.newest
			return g.until
		}
		for _, s := range stale {
			encoded, _ := json.Marshal(s.Want)
			var secret corev1.Secret
			if err := json.Unmarshal(encoded, &secret); err != nil {
				v.t.Fatal(err)
			}
			v.secrets[secret.Name] = &secret
			v.writes++
		}
	}
	v.t.Fatal("there is always something to write")
	return time.Time{}
}

func (v *vault) ca(key string) *x509.Certificate {
	v.t.Helper()
	ca, err := pki.Parse(v.secrets["example-ca-tls"].Data[key])
	if err != nil {
		v.t.Fatalf("%s of the CA: %v", key, err)
	}
	return ca
}

func (v *vault) cas() int {
	return bytes.Count(v.secrets["example-peer-tls"].Data["peer-ca.crt"], []byte("BEGIN"))
}

func TestGeneratedCertificates(t *testing.T) {
	v := newVault(t)
	until := v.at(midday)
	if v.writes != 4 {
		t.Errorf("%d Secrets were written, want 4", v.writes)
	}
	server, err := pki.Parse(v.secrets["example-server-tls"].Data["server.crt"])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"example-client.ns.svc.example.internal", "example-abcde.example.ns.svc.example.internal"} {
		if err := server.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if want := midday.Add(60 * 24 * time.Hour); until.Before(want.Add(-time.Hour)) || until.After(want.Add(time.Hour)) {
		t.Errorf("they are renewed at %s, want %s", until, want)
	}
	if v.at(until.Add(-time.Minute)); v.writes != 4 {
		t.Error("certificates are renewed before it is time")
	}
	if v.at(until.Add(time.Minute)); v.writes != 7 {
		t.Errorf("when it is time, %d Secrets are written, want 3", v.writes-4)
	}
}

// TestGeneratedCA: at every step all members accept each other's certificates, also those that
// were not restarted yet.
func TestGeneratedCA(t *testing.T) {
	v := newVault(t)
	v.at(midday)
	first := v.ca(corev1.TLSCertKey)
	v.trusted = first
	later := pki.RenewAt(first).Add(time.Minute)
	v.at(later)
	next := v.ca(nextCert)
	if next.Equal(first) || v.cas() != 2 {
		t.Fatalf("members trust %d CAs, want 2", v.cas())
	}
	peer, _ := pki.Parse(v.secrets["example-peer-tls"].Data["peer.crt"])
	if peer.CheckSignatureFrom(first) != nil {
		t.Error("the next CA signs before all members trust it")
	}
	v.trusted = next // all have been restarted
	v.at(later.Add(time.Minute))
	peer, _ = pki.Parse(v.secrets["example-peer-tls"].Data["peer.crt"])
	if !v.ca(corev1.TLSCertKey).Equal(next) || peer.CheckSignatureFrom(next) != nil {
		t.Error("the next CA does not sign although all members trust it")
	}
	if v.cas() != 2 {
		t.Errorf("members trust %d CAs until the old one has expired, want 2", v.cas())
	}
	if v.at(first.NotAfter.Add(time.Hour)); v.cas() != 1 {
		t.Errorf("members trust %d CAs when the old one has expired, want 1", v.cas())
	}
}

// TestGeneratedUsers: with authentication on, the operator is root by a Secret of its own, and users' clients are not. Their
// certificate is another one only when all members trust who signs it.
func TestGeneratedUsers(t *testing.T) {
	v := newVault(t)
	v.at(midday)
	name := func(secret string) string {
		t.Helper()
		cert, err := pki.Parse(v.secrets[secret].Data["etcd-client.crt"])
		if err != nil {
			t.Fatal(err)
		}
		return cert.Subject.CommonName
	}
	if was := name("example-client-tls"); was != "root" || v.secrets["example-operator-tls"] != nil {
		t.Errorf("without authentication, clients are %q", was)
	}
	v.trusted, v.ec.Spec.Auth = v.ca(corev1.TLSCertKey), &v1beta2.AuthPolicy{RootSecret: "root"}
	before := v.writes
	v.at(midday.Add(time.Minute))
	if clients, operator := name("example-client-tls"), name("example-operator-tls"); clients != "example-client" || operator != "root" || v.writes != before+2 {
		t.Errorf("with authentication, clients are %q, and the operator %q; %d Secrets were written", clients, operator, v.writes-before)
	}
	if got := objects.ClientSecret(v.ec); got != "example-operator-tls" {
		t.Errorf("backups are made with %s", got)
	}
	if v.at(midday.Add(time.Hour)); v.writes != before+2 {
		t.Error("certificates are made again and again")
	}
}

// TestGeneratedCALost: without the Secret of the CA another CA is made, and signs when all members
// trust it, also if it is valid for less long than the one before.
func TestGeneratedCALost(t *testing.T) {
	v := newVault(t)
	v.at(midday)
	first := v.ca(corev1.TLSCertKey)
	v.trusted = first
	v.ec.Spec.TLS.Generated.CAValidFor = &metav1.Duration{Duration: 300 * 24 * time.Hour}
	delete(v.secrets, "example-ca-tls")
	v.at(midday.Add(time.Hour))
	second := v.ca(corev1.TLSCertKey)
	peer, _ := pki.Parse(v.secrets["example-peer-tls"].Data["peer.crt"])
	if second.Equal(first) || v.cas() != 2 || peer.CheckSignatureFrom(first) != nil {
		t.Errorf("members trust %d CAs, want 2, and show certificates of the first", v.cas())
	}
	if !v.newest.Equal(second) {
		t.Error("members are not restarted to trust the second CA")
	}
	v.trusted = second
	v.at(midday.Add(2 * time.Hour))
	peer, _ = pki.Parse(v.secrets["example-peer-tls"].Data["peer.crt"])
	if peer.CheckSignatureFrom(second) != nil {
		t.Error("the second CA does not sign although all members trust it")
	}
}
