package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"
)

// lifetime of the certificates: longer than any local cluster's, and tests may
// set the clock forward.
const lifetime = 10 * 365 * 24 * time.Hour

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// pair is a certificate and its key.
type pair struct{ cert, key []byte }

func newAuthority(name string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	unsigned := newCertificate(pkix.Name{CommonName: name})
	unsigned.IsCA, unsigned.BasicConstraintsValid = true, true
	unsigned.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, unsigned, unsigned, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert: cert, key: key, pem: encode("CERTIFICATE", der)}, err
}

// client makes the certificate of a user in groups.
func (a *authority) client(user string, groups ...string) (pair, error) {
	cert := newCertificate(pkix.Name{CommonName: user, Organization: groups})
	cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(cert)
}

// server makes the certificate of a server at addresses, its own loopback ones
// and names.
func (a *authority) server(name string, ips []netip.Addr, names ...string) (pair, error) {
	cert := newCertificate(pkix.Name{CommonName: name})
	cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	cert.DNSNames = names
	cert.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, ip := range ips {
		cert.IPAddresses = append(cert.IPAddresses, ip.AsSlice())
	}
	return a.sign(cert)
}

func (a *authority) sign(cert *x509.Certificate) (pair, error) {
	key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", cert.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	return pair{cert: encode("CERTIFICATE", der), key: keyPEM}, err
}

func newCertificate(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails since Go 1.24
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-24 * time.Hour), // tests may set the clock back, too
		NotAfter:     time.Now().Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return encode("EC PRIVATE KEY", der), err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// credentials are every file that a component proves who it is with.
type credentials struct {
	ca, requestCA *authority
	files         map[string][]byte // of the control plane, in pkiDir
	clients       map[string]pair   // for kubeconfigs, by name
	kubelets      map[string]pair   // of servers, by the node's name
}

// newCredentials makes them all. The names and groups are those that
// Kubernetes' default roles are bound to.
func newCredentials(spec Spec) (*credentials, error) {
	ca, err := newAuthority("localcluster")
	if err != nil {
		return nil, err
	}
	requestCA, err := newAuthority("localcluster-front-proxy")
	if err != nil {
		return nil, err
	}
	c := &credentials{
		ca: ca, requestCA: requestCA,
		files: map[string][]byte{}, clients: map[string]pair{}, kubelets: map[string]pair{},
	}
	if c.files["ca.key"], err = encodeKey(ca.key); err != nil {
		return nil, err
	}
	c.files["front-proxy-ca.crt"] = requestCA.pem

	accounts, err := newKey()
	if err != nil {
		return nil, err
	}
	if c.files["service-accounts.key"], err = encodeKey(accounts); err != nil {
		return nil, err
	}

	servers := map[string]func() (pair, error){
		"apiserver": func() (pair, error) {
			return ca.server("kube-apiserver", append(spec.first().ips(), spec.apiService()), "localhost", Name,
				"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc."+spec.Domain)
		},
		"apiserver-kubelet":  func() (pair, error) { return ca.client("kube-apiserver-kubelet-client", "system:masters") },
		"front-proxy-client": func() (pair, error) { return requestCA.client("front-proxy-client") },
	}
	for name, sign := range servers {
		pair, err := sign()
		if err != nil {
			return nil, err
		}
		c.files[name+".crt"], c.files[name+".key"] = pair.cert, pair.key
	}

	for name, groups := range map[string][]string{
		"admin":                          {"system:masters"},
		"system:kube-controller-manager": nil,
		"system:kube-scheduler":          nil,
		"system:kube-proxy":              nil,
	} {
		if c.clients[name], err = ca.client(name, groups...); err != nil {
			return nil, err
		}
	}
	for _, node := range spec.Nodes {
		if err := c.addKubelet(node); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *credentials) addKubelet(node Node) (err error) {
	if c.clients[nodeUser(node.Name)], err = c.ca.client(nodeUser(node.Name), "system:nodes"); err != nil {
		return err
	}
	c.kubelets[node.Name], err = c.ca.server("kubelet", node.ips(), "localhost", node.Name)
	return err
}

// nodeUser is who a kubelet is for the API server.
func nodeUser(name string) string { return "system:node:" + name }

// of are the files of a node in pkiDir.
func (c *credentials) of(node Node) map[string][]byte {
	server, client := c.kubelets[node.Name], c.clients[nodeUser(node.Name)]
	return map[string][]byte{
		"ca.crt":      c.ca.pem,
		"kubelet.crt": server.cert, "kubelet.key": server.key,
		"kubelet-client.crt": client.cert, "kubelet-client.key": client.key,
	}
}
