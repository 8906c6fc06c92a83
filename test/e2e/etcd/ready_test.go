//go:build e2e

package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestEtcdReadyIsServed: whichever way a cluster becomes Ready, a client that connects then is answered.
func TestEtcdReadyIsServed(t *testing.T) {
	t.Parallel()
	needsLocalCluster(t)
	e := etcd{t, e2e.NewNamespace(t, restricted)}
	b := e.believer()
	s := e.s3()
	for n := range e2e.Rounds(t) {
		b.After("it is created", func() { e.apply("size: 3", volumes) }, b.Ready)
		e.put("/key", "backed up")
		name := fmt.Sprintf("backup-%d", n)
		e.backUp(name, "etcdCluster: example", s.at("storageType", name))
		e.backup(name, isMade)

		b.After("it has grown", b.Patched(`{"size":5}`), b.Ready)
		b.After("it has shrunk", b.Patched(`{"size":3}`), b.Ready)
		b.After("it is upgraded", b.Patched(`{"version":"`+newer+`"}`), b.Ready)
		b.After("it is downgraded", b.Patched(`{"version":"`+current+`"}`), b.Ready)
		deleted, replaced := b.DeletePods("etcd_cluster=example")
		b.After("all pods are deleted", deleted, replaced)
		b.After("it was paused", func() {
			e.patch(`{"paused":true}`)
			e.kubectl("wait", "--for=condition=Ready=False", e2e.Patience, "etcd/example")
			e.patch(`{"paused":false}`)
		}, b.Ready)
		deleted, replaced = b.DeleteService()
		b.After("the Service is deleted", deleted, replaced)
		b.After("the Service leads elsewhere", func() {
			e.kubectl("patch", "service", "example-client", "-p", `{"spec":{"selector":{"etcd_cluster":"another"}}}`)
		}, func() error {
			if to := e.kubectl("get", "service", "example-client", "-o", "jsonpath={.spec.selector.etcd_cluster}"); to != "example" {
				return fmt.Errorf("the Service leads to %q", to)
			}
			return b.Ready()
		})
		b.After("it is restored", func() {
			e.restore(name, "etcdCluster: {name: example}", s.at("backupStorageType", name))
		}, func() error {
			var r v1beta2.EtcdRestore
			if err := cluster.Get(context.Background(), client.ObjectKey{Namespace: e.namespace, Name: name}, &r); err != nil {
				return err
			}
			if !r.Status.Succeeded {
				return fmt.Errorf("not restored: %+v", r.Status)
			}
			return b.Ready()
		})
		e.kubectl("delete", "etcd", "example")
		pace.Eventually(t, time.Minute, func() error {
			if n := len(e.pods()); n > 0 {
				return fmt.Errorf("there are %d pods", n)
			}
			return nil
		})
	}
}

// TestEtcdReadyWithOtherCertificates is the same for a cluster whose certificates are replaced.
func TestEtcdReadyWithOtherCertificates(t *testing.T) {
	t.Parallel()
	needsLocalCluster(t)
	e := etcd{t, e2e.NewNamespace(t, restricted)}
	b := e.believer()
	b.After("it is created with TLS", func() { e.apply("size: 3", "TLS: {generated: {}}") }, b.Ready)
	for range e2e.Rounds(t) {
		before := e.issuer()
		b.After("its CA is replaced", func() { e.kubectl("delete", "secret", "example-ca-tls") }, func() error {
			if ca, err := e.findIssuer(); err != nil {
				return err
			} else if ca.Equal(before) {
				return errors.New("the certificates are those of the first CA")
			}
			return b.Ready()
		})
	}
}

// believer is a client that connects each time the cluster is shown as Ready.
func (e etcd) believer() *e2e.Believer {
	e.t.Helper()
	return e2e.NewBeliever(e.t, e.namespace, "etcdclusters.v1beta2.etcd.database.coreos.com", "example", "example-client", 2379)
}
