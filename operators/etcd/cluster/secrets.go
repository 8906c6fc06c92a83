package cluster

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/pki"
)

// This file reads the Secrets with certificates: those that the spec names, or those that the
// operator makes (generate.go). They are read when one of them has changed, and looked at again
// when a certificate is to be renewed or expires.

// use is a Secret, and what it is read for.
type use struct {
	role   pki.Role
	secret string
	// field is the one of the spec that names it; empty for a generated one.
	field string
}

// usesOf are the Secrets of a cluster with TLS: of the peers, the servers and the operator.
func usesOf(ec *v1beta2.EtcdCluster) []use {
	if s := ec.Spec.TLS.Static; s != nil {
		return []use{
			{pki.Peer, s.Member.PeerSecret, "spec.TLS.static.member.peerSecret"},
			{pki.Server, s.Member.ServerSecret, "spec.TLS.static.member.serverSecret"},
			{pki.Client, s.OperatorSecret, "spec.TLS.static.operatorSecret"},
		}
	}
	return []use{{pki.Peer, ec.Name + "-peer-tls", ""}, {pki.Server, ec.Name + "-server-tls", ""}, {pki.Client, ec.Name + "-client-tls", ""}}
}

// secretsOf are the Secrets whose change is news for an EtcdCluster.
func secretsOf(ec *v1beta2.EtcdCluster) []string {
	if ec.Spec.TLS == nil {
		return nil
	}
	var all []string
	for _, u := range usesOf(ec) {
		all = append(all, u.secret)
	}
	if ec.Spec.TLS.Generated != nil {
		all = append(all, caSecret(ec))
	}
	return all
}

// knownCertificates remembers the certificates of clusters.
type knownCertificates struct {
	mu  sync.Mutex
	all map[types.NamespacedName]knownCertificate
}

type knownCertificate struct {
	certificates
	// versions are those of the Secrets that it was made of, and until is when it is looked at
	// again although they are the same.
	versions string
	until    time.Time
}

func (k *knownCertificates) get(ec types.NamespacedName) knownCertificate {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[ec]
}

func (k *knownCertificates) set(ec types.NamespacedName, to knownCertificate) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[ec] = to
}

func (k *knownCertificates) forget(ec types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, ec)
}

// observeCertificates reads the certificates of a cluster. What is wrong with them is a problem to
// report: the members have what they have, and the operator goes on with what it had.
func (o *observer) observeCertificates(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, pods map[string]*corev1.Pod) (certificates, error) {
	if ec.Spec.TLS == nil {
		return certificates{}, nil
	}
	now := o.now()
	versions := fmt.Sprint(ec.Generation)
	for _, secret := range secretsOf(ec) {
		meta := contents.Metadata(contents.Secret)
		err := r.Get(ctx, types.NamespacedName{Namespace: ec.Namespace, Name: secret}, meta)
		if err != nil && !apierrors.IsNotFound(err) {
			return certificates{}, err
		}
		versions += " " + string(meta.UID) + "/" + meta.ResourceVersion
	}
	for _, name := range sortedKeys(pods) {
		versions += fmt.Sprint(" ", annotation.Of(pods[name], annotation.CA), isStopping(pods[name]))
	}
	known := o.certificates.get(key(ec))
	if known.versions == versions && now.Before(known.until) {
		return known.certificates, nil
	}
	made, until, err := o.readCertificates(ctx, r, ec, pods, now)
	if err != nil {
		return certificates{}, err
	}
	if made.problem != nil || len(made.stale) > 0 {
		return known.with(made), nil
	}
	o.certificates.set(key(ec), knownCertificate{made, versions, until})
	return made, nil
}

// with is what was good before, and is used until what was read now is good, too.
func (c certificates) with(now certificates) certificates {
	c.problem, c.stale = now.problem, now.stale
	if !now.expires.IsZero() {
		c.expires = now.expires // of what is in the Secrets, good or not
	}
	return c
}

// readCertificates reads the Secrets, and says when they are to be looked at again.
func (o *observer) readCertificates(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, pods map[string]*corev1.Pod, now time.Time) (made certificates, until time.Time, err error) {
	var data []map[string][]byte
	if ec.Spec.TLS.Generated != nil {
		g := generator{ec: ec, clusterDomain: o.clusterDomain, now: now, random: rand.Reader, read: func(name string) (*corev1.Secret, error) {
			secret := &corev1.Secret{}
			err := r.Live.Get(ctx, types.NamespacedName{Namespace: ec.Namespace, Name: name}, secret)
			if apierrors.IsNotFound(err) {
				return &corev1.Secret{}, nil
			}
			return secret, err
		}, isTrusted: func(ca *x509.Certificate) bool {
			for _, pod := range pods {
				// One that is being restarted still trusts what it did before, until it has stopped.
				if annotation.Of(pod, annotation.CA) != hashOfCA(ca) || isStopping(pod) {
					return false
				}
			}
			return true
		}}
		if data, made.stale, err = g.generate(); err != nil || len(made.stale) > 0 {
			made.problem = &status.Problem{Reason: reasonCreating, Message: "Certificates are being made", Retriable: true}
			return made, until, err
		}
		until, made.caHash = g.until, hashOfCA(g.newest)
	} else {
		for _, u := range usesOf(ec) {
			content, _, err := contents.Read(ctx, r.Live, contents.Source{Kind: contents.Secret, NamespacedName: types.NamespacedName{Namespace: ec.Namespace, Name: u.secret}})
			if apierrors.IsNotFound(err) {
				made.problem = &status.Problem{Reason: reasonNoSecret, Message: fmt.Sprintf("Secret %q does not exist: create it, or correct %s", u.secret, u.field)}
				return made, until, nil
			} else if err != nil {
				return made, until, err
			}
			data = append(data, content)
		}
	}
	uses := usesOf(ec)
	var checked []pki.Checked
	checked, made.problem = check(ec, data, now)
	made.expires = firstEnd(checked)
	if made.problem != nil {
		return made, until, nil
	}
	for _, c := range checked {
		if expires := c.Cert.NotAfter; until.IsZero() || expires.Before(until) {
			until = expires
		}
	}
	if checked[0].Doubt != "" {
		made.doubt = fmt.Sprintf("Secret %q: %s", uses[0].secret, checked[0].Doubt)
	}
	made.peer, made.server = mountedSecret{uses[0].secret, checked[0].Files}, mountedSecret{uses[1].secret, checked[1].Files}
	if made.caHash == "" {
		made.caHash = trustHash(checked[0], checked[1])
	}
	made.client = data[2]
	return made, until, nil
}

// check checks the Secrets of [usesOf], all of them, and says what is wrong first.
func check(ec *v1beta2.EtcdCluster, data []map[string][]byte, now time.Time) (checked []pki.Checked, first *status.Problem) {
	uses := usesOf(ec)
	for i, u := range uses {
		c, wrong := pki.Check(u.role, data[i], hostsOf(ec, u.role), now)
		if wrong != nil && first == nil {
			first = &status.Problem{Reason: reasonBadSecret, Message: fmt.Sprintf("Secret %q: %v. The members keep what they have", u.secret, wrong)}
		}
		checked = append(checked, c)
	}
	if first != nil {
		return checked, first
	}
	if wrong := checked[2].IsTrustedBy(checked[1], now); wrong != nil {
		first = &status.Problem{Reason: reasonBadSecret, Message: fmt.Sprintf("Secret %q: %v (of Secret %q)", uses[2].secret, wrong, uses[1].secret)}
	}
	return checked, first
}

// firstEnd is when the first of the certificates of peer, server and client is accepted no longer:
// peers accept each other, and servers and clients, too.
func firstEnd(checked []pki.Checked) (first time.Time) {
	peer, server, client := checked[0], checked[1], checked[2]
	for _, end := range []time.Time{peer.Ends(peer), server.Ends(client), client.Ends(server)} {
		if first.IsZero() || !end.IsZero() && end.Before(first) {
			first = end
		}
	}
	return first
}

// hostsOf are names that a certificate has to be valid for: that of some member, and for servers
// that of the Service.
func hostsOf(ec *v1beta2.EtcdCluster, role pki.Role) []string {
	switch role.Files {
	case pki.Peer.Files:
		return []string{hostOf(ec, ec.Name+"-member")}
	case pki.Server.Files:
		return []string{hostOf(ec, ec.Name+"-member"), "localhost"}
	}
	return nil
}

// hashOfCA is what is remembered of the newest of the generated CAs that a member started with: that
// an old one has expired is no reason to restart a member.
func hashOfCA(ca *x509.Certificate) string { return names.Hash(string(ca.Raw)) }

// trustHash is the hash of what members trust.
func trustHash(peer, server pki.Checked) string {
	var all string
	for _, c := range []pki.Checked{peer, server} {
		for _, ca := range c.CAs {
			all += string(ca.Raw)
		}
	}
	return names.Hash(all)
}
