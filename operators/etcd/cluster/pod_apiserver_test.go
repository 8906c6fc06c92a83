//go:build apiserver

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/operators/etcd/pki"
)

// TestPodsAreAccepted: the API server takes the pods and volumes that are made, in a namespace
// with the restricted Pod Security Standard.
func TestPodsAreAccepted(t *testing.T) {
	c, namespace := strictClient(t)
	err := c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}})
	if client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	full := withPolicy(func(p *policy) {
		p.Labels, p.Annotations = map[string]string{"team": "shop"}, map[string]string{"team": "shop"}
		p.NodeSelector, p.Tolerations = map[string]string{"a": "b"}, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		p.AntiAffinity, p.ClusterDomain = true, "k.local"
	})
	for name, ec := range map[string]*etcdCluster{
		"plain": aCluster(), "volumes": aCluster(withVolumes), "TLS": aCluster(withTLS), "everything": aCluster(full, withVolumes, withTLS, keeping(time.Hour)),
	} {
		ec.Namespace = namespace
		for _, version := range []string{"3.2.13", "3.4.37", "3.6.16"} {
			certs := certificates{peer: mountedSecret{"p", pki.Peer.Files}, server: mountedSecret{"s", pki.Server.Files}, caHash: "1"}
			if err := c.Create(t.Context(), pod(ec, "example-abcde", version, founding, certs), client.DryRunAll); err != nil {
				t.Errorf("%s, etcd %s: %v", name, version, err)
			}
		}
		if hasVolumes(ec) {
			if err := c.Create(t.Context(), claim(ec, "example-abcde"), client.DryRunAll); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, config := range []runtime.ApplyConfiguration{peerService(ec), clientService(ec), disruptionBudget(ec, 3)} {
			if err := c.Apply(t.Context(), config, client.FieldOwner(managedBy), client.DryRunAll); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
