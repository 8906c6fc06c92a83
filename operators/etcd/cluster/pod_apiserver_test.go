//go:build apiserver

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/pki"
	"example.com/fairlead/operators/etcd/step"
)

// TestPodsAreAccepted: the API server takes the pods and volumes that are made, in a namespace
// with the restricted Pod Security Standard.
func TestPodsAreAccepted(t *testing.T) {
	c, namespace := strictClient(t)
	err := c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}})
	if client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	full := func(ec *v1beta2.EtcdCluster) {
		onVolumes(ec)
		withTLS(ec)
		p := ec.Spec.Pod
		ec.Spec.KeepHistory = &metav1.Duration{Duration: time.Hour}
		p.Labels, p.Annotations = map[string]string{"team": "shop"}, map[string]string{"team": "shop"}
		p.NodeSelector, p.Tolerations = map[string]string{"a": "b"}, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		p.AntiAffinity, p.ClusterDomain = true, "k.local"
	}
	for name, ec := range map[string]*v1beta2.EtcdCluster{
		"plain": anEtcd(), "volumes": anEtcd(onVolumes), "TLS": anEtcd(withTLS), "everything": anEtcd(full),
	} {
		ec.Namespace = namespace
		for _, version := range []string{"3.2.13", "3.4.37", "3.6.16"} {
			certs := objects.Certificates{Peer: objects.MountedSecret{Name: "p", Files: pki.Peer.Files}, Server: objects.MountedSecret{Name: "s", Files: pki.Server.Files}, CaHash: "1"}
			if err := c.Create(t.Context(), objects.Pod(ec, "example-abcde", version, step.FoundingOf(ec), certs), client.DryRunAll); err != nil {
				t.Errorf("%s, etcd %s: %v", name, version, err)
			}
		}
		if objects.HasVolumes(ec) {
			if err := c.Create(t.Context(), objects.Claim(ec, "example-abcde"), client.DryRunAll); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, config := range []runtime.ApplyConfiguration{objects.PeerService(ec), objects.ClientService(ec, true), objects.DisruptionBudget(ec, 3)} {
			if err := c.Apply(t.Context(), config, client.FieldOwner(objects.ManagedBy), client.DryRunAll); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
