package certificates

import (
	"bytes"
	"crypto/x509"
	"io"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/pki"
)

// This file makes the certificates of a cluster whose spec has TLS.generated. A CA is replaced in
// three steps, each of which leaves all members able to talk to each other:
//
//	the next CA is made, and trusted beside the present one    members are restarted one at a
//	                                                           time, because etcd reads CAs only
//	                                                           when it starts
//	the next CA is the present one, and signs                  when all members have started with
//	                                                           it; certificates are read anew for
//	                                                           each connection
//	the old one expires                                        until then it is trusted
//
// A CA is made when a third of the present one's time is left, which is more than a certificate of
// the present one lasts.

const (
	defaultValidFor   = 90 * 24 * time.Hour
	defaultCAValidFor = 10 * 365 * 24 * time.Hour
)

// The keys of the Secret of the CA, besides those of a pair of the type kubernetes.io/tls.
const (
	nextCert, nextKey = "next.crt", "next.key"
	oldCert           = "old.crt"
)

// generator makes the certificates of a cluster that are not there, or are to be renewed.
type generator struct {
	ec *v1beta2.EtcdCluster
	// clusterDomain is that of the Kubernetes cluster, unless spec.pod says another one.
	clusterDomain string

	now    time.Time
	random io.Reader
	read   func(name string) (*corev1.Secret, error)
	// isTrusted says whether all members have started with a CA, or later.
	isTrusted func(ca *x509.Certificate) bool
	// until is when the next certificate is to be renewed, and newest the CA that was made last.
	until  time.Time
	newest *x509.Certificate
}

// generate returns the data of the Secrets of objects.SecretsOf, or what has to be
// written before.
func (g *generator) generate() (data []map[string][]byte, stale []objects.StaleSecret, err error) {
	ca, err := g.read(objects.CASecret(g.ec))
	if err != nil {
		return nil, nil, err
	}
	wanted, err := g.authority(ca.Data)
	if err != nil {
		return nil, nil, err
	}
	if !maps.EqualFunc(ca.Data, wanted, bytes.Equal) {
		return nil, []objects.StaleSecret{g.write(ca, objects.CASecret(g.ec), wanted)}, nil
	}
	if g.newest, err = pki.Parse(slices.Concat(ca.Data[nextCert], ca.Data[corev1.TLSCertKey])); err != nil {
		return nil, nil, err
	}
	signer := pki.KeyPair{Cert: ca.Data[corev1.TLSCertKey], Key: ca.Data[corev1.TLSPrivateKeyKey]}
	for _, u := range objects.SecretsOf(g.ec) {
		secret, err := g.read(u.Name)
		if err != nil {
			return nil, nil, err
		}
		// What was trusted once is until it expires. So the Secret of the CA may get lost.
		bundle, err := pki.Bundle(g.now, ca.Data[corev1.TLSCertKey], ca.Data[nextCert], ca.Data[oldCert], secret.Data[u.Role.Files.CA])
		if err != nil {
			return nil, nil, err
		}
		wanted, err := g.leaf(u.Role, u.CommonName, secret.Data, signer, bundle)
		if err != nil {
			return nil, nil, err
		}
		if !maps.EqualFunc(secret.Data, wanted, bytes.Equal) {
			stale = append(stale, g.write(secret, u.Name, wanted))
		}
		data = append(data, wanted)
	}
	return data, stale, nil
}

// authority is the data of the CA's Secret as it is to be.
func (g *generator) authority(has map[string][]byte) (map[string][]byte, error) {
	validFor := defaultCAValidFor
	if d := g.ec.Spec.TLS.Generated.CAValidFor; d != nil {
		validFor = d.Duration
	}
	present, err := pki.Parse(has[corev1.TLSCertKey])
	if err != nil || len(has[corev1.TLSPrivateKeyKey]) == 0 || g.now.After(present.NotAfter) {
		made, err := pki.MakeCA(g.random, g.ec.Name+"."+g.ec.Namespace, g.now, validFor)
		return map[string][]byte{corev1.TLSCertKey: made.Cert, corev1.TLSPrivateKeyKey: made.Key}, err
	}
	g.look(pki.RenewAt(present))
	switch {
	case len(has[nextCert]) > 0:
		if next, err := pki.Parse(has[nextCert]); err != nil || !g.isTrusted(next) {
			return has, err
		}
		return map[string][]byte{corev1.TLSCertKey: has[nextCert], corev1.TLSPrivateKeyKey: has[nextKey], oldCert: has[corev1.TLSCertKey]}, nil
	case !g.now.Before(pki.RenewAt(present)):
		made, err := pki.MakeCA(g.random, g.ec.Name+"."+g.ec.Namespace, g.now, validFor)
		if err != nil {
			return nil, err
		}
		wanted := map[string][]byte{nextCert: made.Cert, nextKey: made.Key}
		maps.Copy(wanted, has)
		return wanted, nil
	}
	return has, nil
}

// leaf is the data of a Secret with a certificate as it is to be.
func (g *generator) leaf(role pki.Role, commonName string, has map[string][]byte, signer pki.KeyPair, bundle []byte) (map[string][]byte, error) {
	validFor := defaultValidFor
	if d := g.ec.Spec.TLS.Generated.ValidFor; d != nil {
		validFor = d.Duration
	}
	wanted := map[string][]byte{role.Files.Cert: has[role.Files.Cert], role.Files.Key: has[role.Files.Key], role.Files.CA: bundle}
	checked, wrong := pki.Check(role, wanted, hostsOf(g.ec, role), g.now)
	if wrong == nil {
		mayBeSigned, err := g.isTrustedPair(signer)
		if err != nil {
			return nil, err
		}
		renewal := pki.RenewAt(checked.Cert)
		isNamed := role.Files != pki.Client.Files || checked.Cert.Subject.CommonName == commonName
		if !mayBeSigned || g.now.Before(renewal) && signer.Signed(checked.Cert) && isNamed {
			g.look(renewal)
			return wanted, nil
		}
	}
	domain := g.clusterDomain
	if g.ec.Spec.Pod != nil && g.ec.Spec.Pod.ClusterDomain != "" {
		domain = g.ec.Spec.Pod.ClusterDomain
	}
	dnsNames := pki.Names(role, g.ec.Name, g.ec.Namespace, domain)
	if role.Files == pki.Client.Files {
		dnsNames = nil
	}
	made, err := signer.Issue(g.random, role, commonName, dnsNames, g.now, validFor)
	wanted[role.Files.Cert], wanted[role.Files.Key] = made.Cert, made.Key
	return wanted, err
}

// isTrustedPair says whether all members have started with the CA of a pair.
func (g *generator) isTrustedPair(ca pki.KeyPair) (bool, error) {
	cert, err := pki.Parse(ca.Cert)
	return err == nil && g.isTrusted(cert), err
}

// look has the certificates looked at again at that time, or sooner.
func (g *generator) look(at time.Time) {
	if at.After(g.now) && (g.until.IsZero() || at.Before(g.until)) {
		g.until = at
	}
}

func (g *generator) write(seen *corev1.Secret, name string, data map[string][]byte) objects.StaleSecret {
	return objects.StaleSecret{Seen: seen, Want: corev1ac.Secret(name, g.ec.Namespace).
		WithLabels(objects.CommonLabels(g.ec)).
		WithOwnerReferences(objects.OwnedBy(g.ec)).
		WithType(corev1.SecretTypeOpaque).
		WithData(data)}
}
