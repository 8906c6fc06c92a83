// Package pki makes and checks the certificates of an etcd cluster: those that members show each
// other (peer), those that they show clients (server), and those of clients.
package pki

// Files are the names of the keys under which a Secret has a certificate, its private key, and
// the CA that the other side's certificate is checked with. A pod sees them as files.
type Files struct {
	Cert, Key, CA string
}
