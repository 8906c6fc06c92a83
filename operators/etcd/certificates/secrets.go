package certificates

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/memo"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/pki"
	"example.com/fairlead/operators/etcd/reason"
)

// This file reads the Secrets with certificates: those that the spec names, or those that the
// operator makes (generate.go). They are read when one of them has changed, and looked at again
// when a certificate is to be renewed or expires.

// Reader reads the certificates of clusters, and remembers what it has read.
type Reader struct {
	clusterDomain string
	now           func() time.Time
	known         memo.Map[types.NamespacedName, known]
}

type known struct {
	objects.Certificates
	// versions are those of the Secrets that it was made of, and until is when it is looked at
	// again although they are the same.
	versions string
	until    time.Time
}

// New reads certificates. The domain is that of the Kubernetes cluster, or empty.
func New(clusterDomain string, now func() time.Time) *Reader {
	return &Reader{clusterDomain: clusterDomain, now: now}
}

// Forget drops what is known of an EtcdCluster that is gone.
func (c *Reader) Forget(ec types.NamespacedName) { c.known.Forget(ec) }

// Observe reads the certificates of a cluster. What is wrong with them is a problem to
// report: the members have what they have, and the operator goes on with what it had.
func (c *Reader) Observe(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, pods map[string]*corev1.Pod) (objects.Certificates, error) {
	if ec.Spec.TLS == nil {
		return objects.Certificates{}, nil
	}
	now := c.now()
	versions := fmt.Sprint(ec.Generation)
	for _, secret := range objects.SecretNames(ec) {
		meta := contents.Metadata(contents.Secret)
		err := r.Get(ctx, types.NamespacedName{Namespace: ec.Namespace, Name: secret}, meta)
		if err != nil && !apierrors.IsNotFound(err) {
			return objects.Certificates{}, err
		}
		versions += " " + string(meta.UID) + "/" + meta.ResourceVersion
	}
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		versions += fmt.Sprint(" ", pods[name].Annotations[annotation.CA], objects.IsStopping(pods[name]))
	}
	before, _ := c.known.Get(objects.Key(ec))
	if before.versions == versions && now.Before(before.until) {
		return before.Certificates, nil
	}
	made, until, err := c.read(ctx, r, ec, pods, now)
	if err != nil {
		return objects.Certificates{}, err
	}
	if made.Problem != nil || len(made.Stale) > 0 {
		return beside(before.Certificates, made), nil
	}
	c.known.Set(objects.Key(ec), known{made, versions, until})
	return made, nil
}

// beside is what was good before, and is used until what was read now is good, too.
func beside(before, now objects.Certificates) objects.Certificates {
	before.Problem, before.Stale = now.Problem, now.Stale
	if !now.Expires.IsZero() {
		before.Expires = now.Expires // of what is in the Secrets, good or not
	}
	return before
}

// read reads the Secrets, and says when they are to be looked at again.
func (c *Reader) read(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, pods map[string]*corev1.Pod, now time.Time) (made objects.Certificates, until time.Time, err error) {
	var data []map[string][]byte
	if ec.Spec.TLS.Generated != nil {
		g := generator{ec: ec, clusterDomain: c.clusterDomain, now: now, random: rand.Reader, read: func(name string) (*corev1.Secret, error) {
			secret := &corev1.Secret{}
			err := r.Live.Get(ctx, types.NamespacedName{Namespace: ec.Namespace, Name: name}, secret)
			if apierrors.IsNotFound(err) {
				return &corev1.Secret{}, nil
			}
			return secret, err
		}, isTrusted: func(ca *x509.Certificate) bool {
			for _, pod := range pods {
				// One that is being restarted still trusts what it did before, until it has stopped.
				if pod.Annotations[annotation.CA] != hashOfCA(ca) || objects.IsStopping(pod) {
					return false
				}
			}
			return true
		}}
		if data, made.Stale, err = g.generate(); err != nil || len(made.Stale) > 0 {
			made.Problem = &status.Problem{Reason: reason.Creating, Message: "Certificates are being made", Retriable: true}
			return made, until, err
		}
		until, made.CaHash = g.until, hashOfCA(g.newest)
	} else {
		for _, u := range objects.SecretsOf(ec) {
			content, _, err := contents.Read(ctx, r.Live, contents.Source{Kind: contents.Secret, NamespacedName: types.NamespacedName{Namespace: ec.Namespace, Name: u.Name}})
			if apierrors.IsNotFound(err) {
				made.Problem = &status.Problem{Reason: reason.NoSecret, Message: fmt.Sprintf("Secret %q does not exist: create it, or correct %s", u.Name, u.Field)}
				return made, until, nil
			} else if err != nil {
				return made, until, err
			}
			data = append(data, content)
		}
	}
	uses := objects.SecretsOf(ec)
	var checked []pki.Checked
	checked, made.Problem = check(ec, data, now)
	made.Expires = firstEnd(checked)
	if made.Problem != nil {
		return made, until, nil
	}
	for _, c := range checked {
		if expires := c.Cert.NotAfter; until.IsZero() || expires.Before(until) {
			until = expires
		}
	}
	if checked[0].Doubt != "" {
		made.Doubt = fmt.Sprintf("Secret %q: %s", uses[0].Name, checked[0].Doubt)
	}
	made.Peer, made.Server = objects.MountedSecret{Name: uses[0].Name, Files: checked[0].Files}, objects.MountedSecret{Name: uses[1].Name, Files: checked[1].Files}
	if made.CaHash == "" {
		made.CaHash = trustHash(checked[0], checked[1])
	}
	made.Client = data[2]
	return made, until, nil
}

// check checks the Secrets of [objects.SecretsOf], all of them, and says what is wrong first.
func check(ec *v1beta2.EtcdCluster, data []map[string][]byte, now time.Time) (checked []pki.Checked, first *status.Problem) {
	uses := objects.SecretsOf(ec)
	for i, u := range uses {
		c, wrong := pki.Check(u.Role, data[i], hostsOf(ec, u.Role), now)
		if wrong != nil && first == nil {
			first = &status.Problem{Reason: reason.BadSecret, Message: fmt.Sprintf("Secret %q: %v. The members keep what they have", u.Name, wrong)}
		}
		checked = append(checked, c)
	}
	if first != nil {
		return checked, first
	}
	if wrong := checked[2].IsTrustedBy(checked[1], now); wrong != nil {
		first = &status.Problem{Reason: reason.BadSecret, Message: fmt.Sprintf("Secret %q: %v (of Secret %q)", uses[2].Name, wrong, uses[1].Name)}
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
		return []string{objects.HostOf(ec, ec.Name+"-member")}
	case pki.Server.Files:
		return []string{objects.HostOf(ec, ec.Name+"-member"), "localhost"}
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
