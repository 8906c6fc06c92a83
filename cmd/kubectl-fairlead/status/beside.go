package status

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/operators/etcd/objects"
)

// beside is what there is to know of an object beside its status: other objects say it, and the servers
// themselves. All of it is asked with the rights of the user, and what these do not reach is said.
type beside struct {
	objects client.Client
	core    corev1client.CoreV1Interface
	now     time.Time
}

func newBeside(c *cli.CLI, objects client.Client, now time.Time) (*beside, error) {
	config, _, err := c.Connect()
	if err != nil {
		return nil, err
	}
	core, err := corev1client.NewForConfig(config)
	return &beside{objects, core, now}, err
}

// patienceBeside bounds all that is asked about an object.
const patienceBeside = 10 * time.Second

func (b *beside) of(ctx context.Context, o client.Object) cli.Page {
	ctx, stop := context.WithTimeout(ctx, patienceBeside)
	defer stop()
	p := &cli.Page{}
	switch o := o.(type) {
	case *etcdv1beta2.EtcdCluster:
		b.members(ctx, p, o)
		b.backups(ctx, p, o)
		b.certificates(ctx, p, o)
		b.evictions(ctx, p, o)
	case *cachev1alpha1.Memcached:
		b.items(ctx, p, o)
		b.evictions(ctx, p, o)
	case *webv1.WebServer:
		b.evictions(ctx, p, o)
	}
	return *p
}

// unknown says why something is not known.
func unknown(p *cli.Page, word, right string, err error) {
	if apierrors.IsForbidden(err) {
		p.Add(word, "unknown: you have no right to %s", right)
		return
	}
	p.Add(word, "unknown: %v", err)
}

// evictions is the room that PodDisruptionBudgets leave.
func (b *beside) evictions(ctx context.Context, p *cli.Page, o client.Object) {
	const word = "drains"
	var list policyv1.PodDisruptionBudgetList
	if err := b.objects.List(ctx, &list, client.InNamespace(o.GetNamespace())); err != nil {
		unknown(p, word, "list poddisruptionbudgets", err)
		return
	}
	for _, budget := range list.Items {
		if metav1.IsControlledBy(&budget, o) {
			st := budget.Status
			p.Add(word, "evictions allowed now: %d (pods healthy: %d of %d, to stay healthy: %d)",
				st.DisruptionsAllowed, st.CurrentHealthy, st.ExpectedPods, st.DesiredHealthy)
			return
		}
	}
	p.Add(word, "no PodDisruptionBudget: nothing keeps all pods from being evicted")
}

// backups are the EtcdBackups of a cluster.
func (b *beside) backups(ctx context.Context, p *cli.Page, o *etcdv1beta2.EtcdCluster) {
	var list etcdv1beta2.EtcdBackupList
	if err := b.objects.List(ctx, &list, client.InNamespace(o.Namespace)); err != nil {
		unknown(p, "backups", "list etcdbackups", err)
		return
	}
	isNone := true
	for i := range list.Items {
		backup := &list.Items[i]
		if backup.Spec.EtcdCluster != o.Name {
			continue
		}
		text := backup.Name + ": none yet"
		if last := backup.Status.LastSuccessDate; last != nil {
			text = backup.Name + ": last " + timed(last, b.now)
		}
		switch proof := backup.Status.LastProof; {
		case proof != nil:
			text += "; last proved " + cli.Far(proof.Time.Time, b.now)
		case backup.Spec.Verify == etcdv1beta2.VerifyRestore:
			text += "; none proved yet"
		}
		p.Add(map[bool]string{true: "backups"}[isNone], "%s", text)
		isNone = false
	}
	if isNone {
		p.Add("backups", "no EtcdBackup is for this cluster")
	}
}

// certificates are the ends of those in the Secrets of a cluster with TLS.
func (b *beside) certificates(ctx context.Context, p *cli.Page, o *etcdv1beta2.EtcdCluster) {
	word := "certificates"
	for _, name := range certificateSecrets(o) {
		secret, err := b.core.Secrets(o.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsForbidden(err) {
			unknown(p, word, "get secrets", err)
			return
		}
		var end time.Time
		if err == nil {
			end, err = endOf(secret)
		}
		if err != nil {
			p.Add(word, "%s: unknown: %v", name, err)
		} else {
			p.Add(word, "%s: %.0f days left, until %s", name, math.Floor(end.Sub(b.now).Hours()/24), end.UTC().Format(time.DateOnly))
		}
		word = ""
	}
}

func certificateSecrets(o *etcdv1beta2.EtcdCluster) []string {
	switch tls := o.Spec.TLS; {
	case tls == nil:
		return nil
	case tls.Generated != nil:
		names := []string{o.Name + "-server-tls", o.Name + "-peer-tls", o.Name + "-client-tls", o.Name + "-ca-tls"}
		if o.Spec.Auth != nil {
			names = append(names, objects.ClientSecret(o))
		}
		return names
	case tls.Static != nil:
		var names []string
		if m := tls.Static.Member; m != nil {
			names = append(names, m.ServerSecret, m.PeerSecret)
		}
		names = append(names, tls.Static.OperatorSecret)
		return slices.DeleteFunc(names, func(name string) bool { return name == "" })
	}
	return nil
}

// endOf is when the first of a Secret's certificates to end does so.
func endOf(secret *corev1.Secret) (time.Time, error) {
	var end time.Time
	for _, key := range []string{"tls.crt", "server.crt", "peer.crt", "etcd-client.crt"} {
		for block, rest := pem.Decode(bytes.TrimSpace(secret.Data[key])); block != nil; block, rest = pem.Decode(rest) {
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return time.Time{}, fmt.Errorf("%s: %w", key, err)
			}
			if end.IsZero() || certificate.NotAfter.Before(end) {
				end = certificate.NotAfter
			}
		}
	}
	if end.IsZero() {
		return end, errors.New("no certificate is in it")
	}
	return end, nil
}
