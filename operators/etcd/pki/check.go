package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Checked is what a Secret has for a role, after [Check].
type Checked struct {
	Files Files
	// Cert is the certificate that is shown, and CAs are those that the other side's is checked with.
	Cert *x509.Certificate
	CAs  []*x509.Certificate
	// Doubt says why it may not work all the same; empty if there is no reason.
	Doubt string

	pair tls.Certificate
}

// Check reads a Secret's data for a role. The certificate has to be valid now, for the role, and
// for each of the hosts. The error says which key is wrong, and why.
func Check(role Role, data map[string][]byte, hosts []string, now time.Time) (Checked, error) {
	files, err := FilesOf(role, data)
	if err != nil {
		return Checked{}, err
	}
	c := Checked{Files: files}
	if _, err := parseAll(data[files.Cert]); err != nil {
		return c, fmt.Errorf("%s is no certificate: %w", files.Cert, err)
	}
	c.pair, err = KeyPair{data[files.Cert], data[files.Key]}.parse()
	if err != nil {
		return c, fmt.Errorf("%s is not the private key of the certificate in %s: %w", files.Key, files.Cert, err)
	}
	c.Cert = c.pair.Leaf
	if c.CAs, err = parseAll(data[files.CA]); err != nil {
		return c, fmt.Errorf("%s is no certificate of a CA: %w", files.CA, err)
	}
	if err := c.checkTime(now); err != nil {
		return c, err
	}
	for _, host := range hosts {
		if err := c.Cert.VerifyHostname(host); err != nil {
			return c, fmt.Errorf("the certificate in %s is not valid for %s, only for %s", files.Cert, host, c.names())
		}
	}
	for _, usage := range role.usages {
		if !allows(c.Cert, usage) {
			return c, fmt.Errorf("the certificate in %s must have the extended key usage %s", files.Cert, usageNames[usage])
		}
	}
	if role.isMutual {
		if err := c.IsTrustedBy(c, now); err != nil {
			return c, err
		}
		c.Doubt = c.doubt()
	}
	return c, nil
}

func (c Checked) checkTime(now time.Time) error {
	switch {
	case now.After(c.Cert.NotAfter):
		return fmt.Errorf("the certificate in %s expired at %s", c.Files.Cert, c.Cert.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(c.Cert.NotBefore):
		return fmt.Errorf("the certificate in %s is not valid before %s", c.Files.Cert, c.Cert.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// IsTrustedBy says whether other accepts the certificate, by its CAs: an error if not.
func (c Checked) IsTrustedBy(other Checked, now time.Time) error {
	if _, err := c.chains(other.CAs, now); err != nil {
		return fmt.Errorf("the certificate in %s is not signed by a CA in %s: %w", c.Files.Cert, other.Files.CA, err)
	}
	return nil
}

// chains are the ways from the certificate to one of the CAs that are valid at that time.
func (c Checked) chains(cas []*x509.Certificate, at time.Time) ([][]*x509.Certificate, error) {
	options := x509.VerifyOptions{Roots: pool(cas), CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, Intermediates: x509.NewCertPool()}
	for _, der := range c.pair.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			options.Intermediates.AddCert(cert)
		}
	}
	return c.Cert.Verify(options)
}

// Ends is when other accepts the certificate no longer, because it or the CA that has signed it has
// expired; of several CAs the one that lasts longest counts. A CA that is only trusted still, beside
// the one that matters, does not. Of one that no CA has signed it is its own end, and of none zero.
func (c Checked) Ends(other Checked) (end time.Time) {
	if c.Cert == nil {
		return end
	}
	for _, ca := range other.CAs {
		// What has expired since was valid then.
		begin := c.Cert.NotBefore
		if ca.NotBefore.After(begin) {
			begin = ca.NotBefore
		}
		chains, _ := c.chains([]*x509.Certificate{ca}, begin) // none, if this is not the CA
		for _, chain := range chains {
			first := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
			if first.NotAfter.After(end) {
				end = first.NotAfter
			}
		}
	}
	if end.IsZero() {
		return c.Cert.NotAfter
	}
	return end
}

// doubt finds a peer's certificate that etcd refuses because of where it comes from: etcd looks up
// the other member's address, and the name that DNS gives does not end in .svc.
func (c Checked) doubt() string {
	if len(c.Cert.IPAddresses) > 0 || len(c.Cert.DNSNames) == 0 {
		return ""
	}
	for _, name := range c.Cert.DNSNames {
		if !strings.HasPrefix(name, "*.") || !strings.HasSuffix(name, ".svc") {
			return ""
		}
	}
	return fmt.Sprintf("the certificate in %s is valid for %s only, and etcd refuses members whose address is looked up as a name in the domain of the Kubernetes cluster: add the name %s, or with that domain if it is another one",
		c.Files.Cert, c.names(), c.Cert.DNSNames[0]+".cluster.local")
}

func (c Checked) names() string {
	all := slices.Clone(c.Cert.DNSNames)
	for _, ip := range c.Cert.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "no name at all"
	}
	return strings.Join(all, ", ")
}

var usageNames = map[x509.ExtKeyUsage]string{
	x509.ExtKeyUsageServerAuth: "server auth",
	x509.ExtKeyUsageClientAuth: "client auth",
}

// allows says whether a certificate may be used so. One that does not say is for any use.
func allows(cert *x509.Certificate, usage x509.ExtKeyUsage) bool {
	if len(cert.ExtKeyUsage) == 0 && len(cert.UnknownExtKeyUsage) == 0 {
		return true
	}
	return slices.Contains(cert.ExtKeyUsage, usage) || slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny)
}

func pool(certs []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, cert := range certs {
		p.AddCert(cert)
	}
	return p
}

// ClientConfig is how to connect as the client whose Secret has that data. The server's name is to
// be added for each connection.
func ClientConfig(data map[string][]byte) (*tls.Config, error) {
	files, err := FilesOf(Client, data)
	if err != nil {
		return nil, err
	}
	pair, err := KeyPair{data[files.Cert], data[files.Key]}.parse()
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", files.Cert, files.Key, err)
	}
	cas, err := parseAll(data[files.CA])
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s is no certificate of a CA", files.CA), err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool(cas)}, nil
}
