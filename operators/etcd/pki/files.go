// Package pki makes and checks the certificates of an etcd cluster: those that members show each
// other (peer), those that they show clients (server), and those of clients.
package pki

import (
	"crypto/x509"
	"fmt"
	"strings"
)

// Files are the names of the keys under which a Secret has a certificate, its private key, and
// the CA that the other side's certificate is checked with. A pod sees them as files.
type Files struct {
	Cert, Key, CA string
}

func (f Files) all() []string { return []string{f.Cert, f.Key, f.CA} }

// Role is what a certificate is for.
type Role struct {
	// Files are the names of the keys in the words of the CoreOS operator.
	Files Files
	// usages are what the certificate has to be valid for, and issued what an issued one is.
	usages, issued []x509.ExtKeyUsage
	// isMutual says that those who show such a certificate check each other's with the same CA.
	isMutual bool
}

var (
	asServer = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	asClient = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	asBoth   = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
)

// The roles. A peer is a server and a client of other peers. A server needs no more than to be
// one, but etcd's gateway for HTTP is a client of its own server with the same certificate.
var (
	Peer   = Role{Files: Files{"peer.crt", "peer.key", "peer-ca.crt"}, usages: asBoth, issued: asBoth, isMutual: true}
	Server = Role{Files: Files{"server.crt", "server.key", "server-ca.crt"}, usages: asServer, issued: asBoth}
	Client = Role{Files: Files{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt"}, usages: asClient, issued: asClient}
)

// CertManager are the names of the keys that cert-manager writes, whatever the role.
var CertManager = Files{"tls.crt", "tls.key", "ca.crt"}

// FilesOf are the names of the keys that a Secret's data has for a role: those of the role, or
// cert-manager's.
func FilesOf(role Role, data map[string][]byte) (Files, error) {
	for _, files := range []Files{role.Files, CertManager} {
		if len(missing(files, data)) == 0 {
			return files, nil
		}
	}
	closest := role.Files
	if len(missing(CertManager, data)) < len(missing(role.Files, data)) {
		closest = CertManager
	}
	return Files{}, fmt.Errorf("key %s is missing: it needs %s, or %s",
		strings.Join(missing(closest, data), " and "), list(role.Files), list(CertManager))
}

func missing(files Files, data map[string][]byte) []string {
	var names []string
	for _, name := range files.all() {
		if len(data[name]) == 0 {
			names = append(names, name)
		}
	}
	return names
}

func list(f Files) string { return fmt.Sprintf("%s, %s and %s", f.Cert, f.Key, f.CA) }
