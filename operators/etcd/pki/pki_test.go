package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func aCA(t *testing.T, validFor time.Duration) KeyPair {
	t.Helper()
	ca, err := MakeCA(rand.Reader, "etcd CA of shop/example", noon, validFor)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// issued is a Secret's data for a role.
func issued(t *testing.T, ca KeyPair, role Role, names ...string) map[string][]byte {
	t.Helper()
	pair, err := ca.Issue(rand.Reader, role, "example", names, noon, 90*day)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{role.Files.Cert: pair.Cert, role.Files.Key: pair.Key, role.Files.CA: ca.Cert}
}

func TestNames(t *testing.T) {
	want := []string{
		"*.example.shop.svc", "example.shop.svc", "*.example.shop.svc.cluster.local", "example.shop.svc.cluster.local",
		"*.example.shop.svc.k.local", "example.shop.svc.k.local", "example-client", "example-client.shop",
		"example-client.shop.svc", "example-client.shop.svc.cluster.local", "example-client.shop.svc.k.local", "localhost",
	}
	if diff := cmp.Diff(want, Names(Server, "example", "shop", "k.local")); diff != "" {
		t.Errorf("names of a server (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:4], Names(Peer, "example", "shop", "cluster.local")); diff != "" {
		t.Errorf("names of a peer (-want +got):\n%s", diff)
	}
}

func TestIssued(t *testing.T) {
	ca := aCA(t, 3650*day)
	for name, tc := range map[string]struct {
		role   Role
		names  []string
		usages []x509.ExtKeyUsage
		ips    int
	}{
		"peer":   {Peer, Names(Peer, "example", "shop", ""), asBoth, 2},
		"server": {Server, Names(Server, "example", "shop", ""), asBoth, 2},
		"client": {Client, nil, asClient, 0},
	} {
		got, err := Check(tc.role, issued(t, ca, tc.role, tc.names...), nil, noon)
		if err != nil || got.Doubt != "" {
			t.Errorf("%s: %v, %q", name, err, got.Doubt)
			continue
		}
		if !got.Cert.NotBefore.Equal(noon.Add(-5*time.Minute)) || !got.Cert.NotAfter.Equal(noon.Add(90*day)) {
			t.Errorf("%s: valid from %s until %s", name, got.Cert.NotBefore, got.Cert.NotAfter)
		}
		if !slices.Equal(got.Cert.ExtKeyUsage, tc.usages) || !slices.Equal(got.Cert.DNSNames, tc.names) || len(got.Cert.IPAddresses) != tc.ips || got.Cert.IsCA {
			t.Errorf("%s: usages %v, names %v, addresses %v", name, got.Cert.ExtKeyUsage, got.Cert.DNSNames, got.Cert.IPAddresses)
		}
	}
	short, err := Check(Client, issued(t, aCA(t, day), Client), nil, noon)
	if err != nil || !short.Cert.NotAfter.Equal(noon.Add(day)) {
		t.Errorf("a certificate is valid until %s, longer than its CA: %v", short.Cert.NotAfter, err)
	}
	if _, err := (KeyPair{}).Issue(rand.Reader, Peer, "example", nil, noon, day); err == nil {
		t.Error("a certificate was issued without a CA")
	}
	if _, err := MakeCA(bytes.NewReader(nil), "ca", noon, day); err == nil {
		t.Error("a CA was made without randomness")
	}
}

// TestConnections: a client with the generated certificate is accepted by a server with the
// generated certificate, and the other way round; one of another CA is not.
func TestConnections(t *testing.T) {
	ca := aCA(t, 3650*day)
	server := issued(t, ca, Server, Names(Server, "example", "shop", "")...)
	for name, tc := range map[string]struct {
		client  map[string][]byte
		host    string
		accepts bool
	}{
		"its client":         {issued(t, ca, Client), "example-abcde.example.shop.svc", true},
		"by the Service":     {issued(t, ca, Client), "example-client.shop.svc", true},
		"by a wrong name":    {issued(t, ca, Client), "other.shop.svc", false},
		"another's client":   {issued(t, aCA(t, day), Client), "example-abcde.example.shop.svc", false},
		"a client as server": {issued(t, ca, Server), "example-abcde.example.shop.svc", true},
	} {
		data := tc.client
		if data[Client.Files.Cert] == nil {
			data = map[string][]byte{Client.Files.Cert: data[Server.Files.Cert], Client.Files.Key: data[Server.Files.Key], Client.Files.CA: data[Server.Files.CA]}
		}
		config, err := ClientConfig(data)
		if err != nil {
			t.Fatal(err)
		}
		config.ServerName, config.Time = tc.host, func() time.Time { return noon }
		if err := connect(t, config, server); (err == nil) != tc.accepts {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// connect connects a client to a server that has the Secret's data.
func connect(t *testing.T, config *tls.Config, server map[string][]byte) error {
	t.Helper()
	pair, err := tls.X509KeyPair(server[Server.Files.Cert], server[Server.Files.Key])
	if err != nil {
		t.Fatal(err)
	}
	cas, err := parseAll(server[Server.Files.CA])
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	done := make(chan error, 1)
	serving := tls.Server(far, &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool(cas), Time: func() time.Time { return noon },
	})
	go func() {
		err := serving.Handshake()
		_ = far.Close()
		done <- err
	}()
	err = tls.Client(near, config).Handshake()
	_ = near.Close()
	if served := <-done; err == nil {
		err = served
	}
	return err
}

func TestFilesOf(t *testing.T) {
	data := func(names ...string) map[string][]byte {
		all := map[string][]byte{}
		for _, name := range names {
			all[name] = []byte("x")
		}
		return all
	}
	for name, tc := range map[string]struct {
		data map[string][]byte
		want string // of the certificate, or of the error
	}{
		"the API's":      {data("peer.crt", "peer.key", "peer-ca.crt"), "peer.crt"},
		"cert-manager's": {data("tls.crt", "tls.key", "ca.crt"), "tls.crt"},
		"both":           {data("peer.crt", "peer.key", "peer-ca.crt", "tls.crt", "tls.key", "ca.crt"), "peer.crt"},
		"nothing":        {nil, "key peer.crt and peer.key and peer-ca.crt is missing: it needs peer.crt, peer.key and peer-ca.crt, or tls.crt, tls.key and ca.crt"},
		"no CA":          {data("tls.crt", "tls.key"), "key ca.crt is missing"},
		"half of each":   {data("peer.crt", "peer.key", "ca.crt"), "key peer-ca.crt is missing"},
	} {
		files, err := FilesOf(Peer, tc.data)
		if err == nil && files.Cert != tc.want || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %+v, %v, want %s", name, files, err, tc.want)
		}
	}
}

// TestCheck: what is wrong with a Secret is said in words that help.
func TestCheck(t *testing.T) {
	ca, other := aCA(t, 3650*day), aCA(t, 3650*day)
	good := issued(t, ca, Peer, "*.example.shop.svc", "*.example.shop.svc.cluster.local")
	with := func(key string, value []byte) map[string][]byte {
		data := maps.Clone(good)
		data[key] = value
		return data
	}
	asPeer := func(data map[string][]byte, role Role) map[string][]byte {
		return map[string][]byte{"peer.crt": data[role.Files.Cert], "peer.key": data[role.Files.Key], "peer-ca.crt": data[role.Files.CA]}
	}
	for name, tc := range map[string]struct {
		data map[string][]byte
		now  time.Time
		want string
	}{
		"good":               {good, noon, ""},
		"another key":        {with("peer.key", issued(t, ca, Peer)["peer.key"]), noon, "peer.key is not the private key of the certificate in peer.crt"},
		"no key":             {with("peer.key", nil), noon, "key peer.key is missing"},
		"no certificate":     {with("peer.crt", []byte("x")), noon, "peer.crt is no certificate: there is no certificate in PEM in it"},
		"a broken one":       {with("peer.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), noon, "peer.crt is no certificate: x509"},
		"no CA":              {with("peer-ca.crt", []byte("x")), noon, "peer-ca.crt is no certificate of a CA"},
		"another CA":         {with("peer-ca.crt", other.Cert), noon, "the certificate in peer.crt is not signed by a CA in peer-ca.crt"},
		"expired":            {good, noon.Add(91 * day), "the certificate in peer.crt expired at 2026-04-02T12:00:00Z"},
		"not valid yet":      {good, noon.Add(-day), "the certificate in peer.crt is not valid before 2026-01-02T11:55:00Z"},
		"another cluster's":  {issued(t, ca, Peer, "*.other.shop.svc"), noon, "the certificate in peer.crt is not valid for a.example.shop.svc, only for *.other.shop.svc, 127.0.0.1, ::1"},
		"without names":      {issued(t, ca, Peer), noon, "not valid for a.example.shop.svc, only for no name at all"},
		"a client's":         {asPeer(issued(t, ca, Client, "*.example.shop.svc"), Client), noon, "must have the extended key usage server auth"},
		"old and new CA":     {with("peer-ca.crt", append(slices.Clone(other.Cert), ca.Cert...)), noon, ""},
		"text before it all": {with("peer.crt", append([]byte("subject=x\n"), good["peer.crt"]...)), noon, ""},
	} {
		_, err := Check(Peer, tc.data, []string{"a.example.shop.svc"}, tc.now)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// TestWhoTrustsWhom: a server and its clients may have certificates of different CAs.
func TestWhoTrustsWhom(t *testing.T) {
	one, other := aCA(t, 3650*day), aCA(t, 3650*day)
	server, err := Check(Server, issued(t, one, Server, "localhost"), nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	client, err := Check(Client, issued(t, other, Client), nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.IsTrustedBy(server, noon); err == nil || !strings.Contains(err.Error(), "etcd-client.crt is not signed by a CA in server-ca.crt") {
		t.Errorf("a client of another CA: %v", err)
	}
	if err := server.IsTrustedBy(server, noon); err != nil {
		t.Error(err)
	}
}

// TestDoubt: etcd compares the name that DNS gives for an address with those of the certificate.
func TestDoubt(t *testing.T) {
	for names, want := range map[string]bool{
		"*.example.shop.svc": true,
		"*.example.shop.svc *.example.shop.svc.cluster.local": false,
		"*.example.shop.svc example.shop.svc":                 false,
		"":                                                    false,
	} {
		c := Checked{Cert: &x509.Certificate{DNSNames: strings.Fields(names)}}
		if doubt := c.doubt(); (doubt != "") != want {
			t.Errorf("names %q: %q", names, doubt)
		}
	}
}

func TestRenewal(t *testing.T) {
	cert := &x509.Certificate{NotBefore: noon, NotAfter: noon.Add(90 * day)}
	if got := RenewAt(cert); !got.Equal(noon.Add(60 * day)) {
		t.Errorf("renewed at %s", got)
	}
}

func TestBundles(t *testing.T) {
	old, next, expired := aCA(t, 3650*day), aCA(t, 3650*day), aCA(t, time.Minute)
	bundle, err := Bundle(noon.Add(day), next.Cert, old.Cert, next.Cert, expired.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if want := append(slices.Clone(next.Cert), old.Cert...); !bytes.Equal(bundle, want) {
		t.Errorf("bundle:\n%s\nwant:\n%s", bundle, want)
	}
	again, err := Bundle(noon.Add(day), bundle)
	if err != nil || !bytes.Equal(again, bundle) {
		t.Errorf("a bundle of a bundle is another: %v", err)
	}
	if _, err := Bundle(noon, []byte("x")); err == nil {
		t.Error("a bundle was made of no certificate")
	}
	// During a rotation, those with certificates of the old and the new CA trust each other.
	for _, ca := range []KeyPair{old, next} {
		data := issued(t, ca, Peer, "*.example.shop.svc")
		data["peer-ca.crt"] = bundle
		if _, err := Check(Peer, data, nil, noon); err != nil {
			t.Error(err)
		}
	}
}

func TestClientConfigRefuses(t *testing.T) {
	good := issued(t, aCA(t, day), Client)
	for _, key := range Client.Files.all() {
		data := maps.Clone(good)
		data[key] = []byte("x")
		if _, err := ClientConfig(data); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("with a broken %s: %v", key, err)
		}
	}
	if _, err := ClientConfig(nil); err == nil {
		t.Error("a client without certificate")
	}
}

// renewedCA is a CA with the same key, as other tools renew one.
func renewedCA(t *testing.T, ca KeyPair, validFor time.Duration) KeyPair {
	t.Helper()
	pair, err := ca.parse()
	if err != nil {
		t.Fatal(err)
	}
	template := *pair.Leaf
	template.NotAfter = noon.Add(validFor)
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, pair.Leaf.PublicKey, pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return KeyPair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: ca.Key}
}

// TestEnds: what counts is the CA by which a certificate is accepted, and of several the one that
// lasts longest.
func TestEnds(t *testing.T) {
	long, short, other := aCA(t, 3650*day), aCA(t, 30*day), aCA(t, 10*day)
	renewed := renewedCA(t, short, 60*day) // Issue gives no certificate more time than its CA has
	leaf := func(ca KeyPair) map[string][]byte { return issued(t, ca, Peer, "*.example.shop.svc") }
	trusting := func(data map[string][]byte, cas ...KeyPair) map[string][]byte {
		data["peer-ca.crt"] = nil
		for _, ca := range cas {
			data["peer-ca.crt"] = append(data["peer-ca.crt"], ca.Cert...)
		}
		return data
	}
	for name, tc := range map[string]struct {
		data map[string][]byte
		now  time.Time
		want time.Duration
	}{
		"the certificate is first":     {leaf(long), noon, 90 * day},
		"with the CA":                  {leaf(short), noon, 30 * day},
		"the CA is first":              {trusting(leaf(renewed), short), noon, 30 * day},
		"another CA that is trusted":   {trusting(leaf(long), long, other), noon, 90 * day},
		"two CAs of one key":           {trusting(leaf(renewed), short, renewed), noon, 60 * day},
		"the CA has expired":           {trusting(leaf(renewed), short), noon.Add(40 * day), 30 * day},
		"the certificate has expired":  {leaf(long), noon.Add(91 * day), 90 * day},
		"it is not trusted":            {trusting(leaf(long), other), noon, 90 * day},
		"there is no CA":               {trusting(leaf(long), KeyPair{Cert: []byte("x")}), noon, 90 * day},
		"nothing of it can be read":    {map[string][]byte{}, noon, 0},
		"it is valid for another name": {issued(t, long, Peer, "*.other.shop.svc"), noon, 90 * day},
	} {
		c, _ := Check(Peer, tc.data, []string{"a.example.shop.svc"}, tc.now) // what is wrong is another test's
		end := c.Ends(c)
		if tc.want == 0 && !end.IsZero() || tc.want != 0 && !end.Equal(noon.Add(tc.want)) {
			t.Errorf("%s: it ends at %s, want %s", name, end, noon.Add(tc.want))
		}
	}
}
