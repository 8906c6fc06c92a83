package certificates

import (
	"crypto/rand"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/pki"
)

// TestCertificateExpiry: of all Secrets the certificate that is first counts, also if it has expired, or
// another Secret is bad; of what cannot be read, what was known before.
func TestCertificateExpiry(t *testing.T) {
	const day = 24 * time.Hour
	ca, err := pki.MakeCA(rand.Reader, "CA", midday, 3650*day)
	if err != nil {
		t.Fatal(err)
	}
	secret := func(name string, role pki.Role, validFor time.Duration, names ...string) *corev1.Secret {
		pair, err := ca.Issue(rand.Reader, role, "example", names, midday, validFor)
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Data: map[string][]byte{role.Files.Cert: pair.Cert, role.Files.Key: pair.Key, role.Files.CA: ca.Cert}}
	}
	const hosts = "*.example.ns.svc"
	operator := func(validFor time.Duration) *corev1.Secret { return secret("client", pki.Client, validFor) }
	peer, server := secret("peer", pki.Peer, 90*day, hosts), secret("server", pki.Server, 60*day, hosts, "localhost")
	ec := anEtcdOfSecrets()
	ec.Spec.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{Member: &v1beta2.MemberSecret{PeerSecret: "peer", ServerSecret: "server"}, OperatorSecret: "client"}}
	for name, tc := range map[string]struct {
		secrets []client.Object
		now     time.Time
		isBad   bool
		want    time.Duration // from midday
	}{
		"the server's is first":   {[]client.Object{peer, server, operator(90 * day)}, midday, false, 60 * day},
		"the operator's is first": {[]client.Object{peer, server, operator(30 * day)}, midday, false, 30 * day},
		"it has expired":          {[]client.Object{peer, server, operator(30 * day)}, midday.Add(31 * day), true, 30 * day},
		"another is bad":          {[]client.Object{secret("peer", pki.Peer, 90*day, "other"), server, operator(30 * day)}, midday, true, 30 * day},
		"one is not there":        {[]client.Object{peer, operator(30 * day)}, midday, true, 5 * day},
		"nothing of it is usable": {[]client.Object{&corev1.Secret{ObjectMeta: peer.ObjectMeta}, server, operator(90 * day)}, midday, true, 60 * day},
	} {
		t.Run(name, func(t *testing.T) {
			r := &loop.Reader{Live: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(tc.secrets...).Build()}
			made, _, err := New("", nil).read(t.Context(), r, ec, nil, tc.now)
			if err != nil || (made.Problem != nil) != tc.isBad {
				t.Errorf("error %v, problem %+v", err, made.Problem)
			}
			if tc.isBad {
				made = beside(objects.Certificates{Expires: midday.Add(5 * day)}, made)
			}
			if want := midday.Add(tc.want); !made.Expires.Equal(want) {
				t.Errorf("it expires at %s, want %s", made.Expires, want)
			}
		})
	}
}
