package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"time"
)

// backdated is how long before it is made a certificate is valid, for nodes whose clocks are late.
const backdated = 5 * time.Minute

// KeyPair is a certificate and its private key, in PEM.
type KeyPair struct {
	Cert, Key []byte
}

// Names are the DNS names of a member's certificate. Clients reach members by their own names and
// by the Service for clients.
//
// A member that another one connects to looks up the other's address and compares what it finds
// with the certificate's names. DNS answers with names in the domain of the Kubernetes cluster,
// which is cluster.local nearly everywhere. Where it is another one that is not known, the name of
// the headless Service helps, without a wildcard: its addresses are those of all members.
func Names(role Role, name, namespace, clusterDomain string) []string {
	domains := []string{""}
	for _, domain := range []string{"cluster.local", clusterDomain} {
		if end := "." + domain; domain != "" && !slices.Contains(domains, end) {
			domains = append(domains, end)
		}
	}
	service, clients := name+"."+namespace+".svc", name+"-client."+namespace
	var all []string
	for _, domain := range domains {
		all = append(all, "*."+service+domain, service+domain)
	}
	if role.isMutual {
		return all
	}
	all = append(all, name+"-client", clients)
	for _, domain := range domains {
		all = append(all, clients+".svc"+domain)
	}
	return append(all, "localhost")
}

// MakeCA makes a CA. The serial number is random's; which key it gets is not: Go makes keys of the
// system's randomness only.
func MakeCA(random io.Reader, commonName string, now time.Time, validFor time.Duration) (KeyPair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(validFor),
	}
	return sign(random, template, nil, nil)
}

// Issue makes a certificate for a role. Those for members have the names, and the addresses of the
// host itself. It is not valid for longer than the CA.
func (ca KeyPair) Issue(random io.Reader, role Role, commonName string, names []string, now time.Time, validFor time.Duration) (KeyPair, error) {
	parent, err := ca.parse()
	if err != nil {
		return KeyPair{}, fmt.Errorf("read the CA: %w", err)
	}
	signer, ok := parent.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !parent.Leaf.IsCA {
		return KeyPair{}, errors.New("read the CA: it is not one that was made here")
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           role.issued,
		BasicConstraintsValid: true,
		DNSNames:              names,
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(validFor),
	}
	if len(names) > 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	if template.NotAfter.After(parent.Leaf.NotAfter) {
		template.NotAfter = parent.Leaf.NotAfter
	}
	return sign(random, template, parent.Leaf, signer)
}

// sign makes a key, and a certificate that is signed by the parent or, without one, by itself.
func sign(random io.Reader, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (KeyPair, error) {
	number := make([]byte, 16)
	if _, err := io.ReadFull(random, number); err != nil {
		return KeyPair{}, err
	}
	number[0] &= 0x7f // of a positive number
	template.SerialNumber = new(big.Int).Add(new(big.Int).SetBytes(number), big.NewInt(1))
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return KeyPair{}, err
	}
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(random, template, parent, &key.PublicKey, signer)
	if err != nil {
		return KeyPair{}, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return KeyPair{}, err
	}
	return KeyPair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}

// parse reads the pair. Its leaf is the first certificate.
func (p KeyPair) parse() (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return pair, err
	}
	pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0])
	return pair, err
}

// RenewAt is when a certificate is to be renewed: when a third of its time is left.
func RenewAt(cert *x509.Certificate) time.Time {
	return cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / 3)
}

// Parse reads the first certificate in PEM.
func Parse(data []byte) (*x509.Certificate, error) {
	all, err := parseAll(data)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Signed says whether a CA has signed a certificate.
func (ca KeyPair) Signed(cert *x509.Certificate) bool {
	by, err := Parse(ca.Cert)
	return err == nil && cert.CheckSignatureFrom(by) == nil
}

// Bundle puts certificates of CAs together, each once, the first ones first, without those that
// have expired. While a CA is replaced, members trust the old and the new one.
func Bundle(now time.Time, cas ...[]byte) ([]byte, error) {
	var bundle bytes.Buffer
	var seen [][]byte
	for _, ca := range cas {
		if len(ca) == 0 {
			continue
		}
		certs, err := parseAll(ca)
		if err != nil {
			return nil, err
		}
		for _, cert := range certs {
			if now.After(cert.NotAfter) || slices.ContainsFunc(seen, func(raw []byte) bool { return bytes.Equal(raw, cert.Raw) }) {
				continue
			}
			seen = append(seen, cert.Raw)
			bundle.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
		}
	}
	return bundle.Bytes(), nil
}

// parseAll reads all certificates in PEM.
func parseAll(data []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no certificate in PEM in it")
	}
	return all, nil
}
