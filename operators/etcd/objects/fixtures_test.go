package objects

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/pki"
)

type (
	etcdCluster   = v1beta2.EtcdCluster
	policy        = v1beta2.PodPolicy
	clusterOption = func(*etcdCluster)
)

// aCluster is an EtcdCluster as the API server stores it, with its defaults.
func aCluster(options ...clusterOption) *etcdCluster {
	ec := &etcdCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta2.GroupVersion.String(), Kind: "EtcdCluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "example", UID: "example-uid", Generation: 1},
		Spec:       v1beta2.EtcdClusterSpec{Size: 3, Repository: "quay.io/coreos/etcd", Version: "3.6.16"},
	}
	for _, option := range options {
		option(ec)
	}
	return ec
}

func withPolicy(set func(*policy)) clusterOption {
	return func(ec *etcdCluster) {
		if ec.Spec.Pod == nil {
			ec.Spec.Pod = &policy{}
		}
		set(ec.Spec.Pod)
	}
}

func withVolumes(ec *etcdCluster) {
	withPolicy(func(p *policy) {
		p.PersistentVolumeClaimSpec = &corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		}}
	})(ec)
}

func withTLS(ec *etcdCluster) {
	ec.Spec.TLS = &v1beta2.TLSPolicy{Generated: &v1beta2.GeneratedTLS{}}
}

func inDomain(domain string) clusterOption {
	return withPolicy(func(p *policy) { p.ClusterDomain = domain })
}

func withVariables(variables ...string) clusterOption {
	return withPolicy(func(p *policy) {
		for i := 0; i < len(variables); i += 2 {
			p.EtcdEnv = append(p.EtcdEnv, corev1.EnvVar{Name: variables[i], Value: variables[i+1]})
		}
	})
}

func keeping(history time.Duration) clusterOption {
	return func(ec *etcdCluster) { ec.Spec.KeepHistory = &metav1.Duration{Duration: history} }
}

// founding is how the first of two members of a new cluster starts.
var founding = Start{IsNew: true, Token: "t", Initial: []Founder{
	{"example-abcde", "http://example-abcde.example.shop.svc:2380"}, {"example-fghjk", "http://example-fghjk.example.shop.svc:2380"},
}}

// someCertificates are of a cluster whose peers have a Secret in the words of the API, and whose
// servers have one of cert-manager.
var someCertificates = Certificates{
	Peer:   MountedSecret{"peers", pki.Files{Cert: "peer.crt", Key: "peer.key", CA: "peer-ca.crt"}},
	Server: MountedSecret{"servers", pki.Files{Cert: "tls.crt", Key: "tls.key", CA: "ca.crt"}},
	CaHash: "1234",
}

// aPod is the pod of a founder.
func aPod(ec *etcdCluster) *corev1.Pod {
	return Pod(ec, "example-abcde", ec.Spec.Version, founding, someCertificates)
}

// decodeInto reads what is to be applied as the object that it makes.
func decodeInto(t *testing.T, config any, into any) {
	t.Helper()
	data, err := json.Marshal(config)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// aRestoring is what status has of a restore that has begun.
func aRestoring() *v1beta2.Restoring {
	return &v1beta2.Restoring{
		ID: "uid-of-mine", Name: "mine", Seed: "example-qrstv", Phase: v1beta2.RestoreVerifying,
		Source: v1beta2.RestoreSource{
			BackupStorageType: v1beta2.StorageS3, BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3Source{Path: "bucket/key", AWSSecret: "aws"}}, TimeoutInSecond: 60,
		},
	}
}
