package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/pki"
)

// certificates are those of a cluster with TLS; the zero value is a cluster without.
type certificates struct {
	// peer and server are the Secrets that pods mount.
	peer, server mountedSecret
	// caHash is the hash of the CAs in them. etcd reads certificates anew for each connection, and
	// CAs only when it starts.
	caHash string
	// client is the content of the Secret that the operator connects with.
	client map[string][]byte
	// expires is when the first of them is not accepted any more; zero if that is not known.
	expires time.Time
	// stale are generated Secrets that have to be written, or written anew.
	stale []staleSecret
	// doubt says why members may refuse each other all the same.
	doubt string
	// problem is what is wrong with the Secrets.
	problem *status.Problem
}

// mountedSecret is a Secret that pods mount, and the keys of it that are used.
type mountedSecret struct {
	name  string
	files pki.Files
}

// staleSecret is a Secret as it is, or an empty one, and as it is to be.
type staleSecret struct {
	seen client.Object
	want runtime.ApplyConfiguration
}

// Where pods see the certificates: the paths of the CoreOS operator.
const (
	peerTLSPath   = "/etc/etcdtls/member/peer-tls"
	serverTLSPath = "/etc/etcdtls/member/server-tls"
)

// tlsVariables are what etcd has to know about certificates.
func tlsVariables(certs certificates) []corev1.EnvVar {
	p, s := certs.peer.files, certs.server.files
	return []corev1.EnvVar{
		{Name: "ETCD_PEER_CLIENT_CERT_AUTH", Value: "true"},
		{Name: "ETCD_PEER_CERT_FILE", Value: peerTLSPath + "/" + p.Cert},
		{Name: "ETCD_PEER_KEY_FILE", Value: peerTLSPath + "/" + p.Key},
		{Name: "ETCD_PEER_TRUSTED_CA_FILE", Value: peerTLSPath + "/" + p.CA},
		{Name: "ETCD_CLIENT_CERT_AUTH", Value: "true"},
		{Name: "ETCD_CERT_FILE", Value: serverTLSPath + "/" + s.Cert},
		{Name: "ETCD_KEY_FILE", Value: serverTLSPath + "/" + s.Key},
		{Name: "ETCD_TRUSTED_CA_FILE", Value: serverTLSPath + "/" + s.CA},
	}
}

// mountCertificates gives etcd its certificates as files, which follow the Secrets. Where the
// operator says which group the pod has, nobody else can read them.
func mountCertificates(spec *corev1.PodSpec, certs certificates, isRestricted bool) {
	var mode *int32
	if isRestricted {
		mode = new(int32(0o440))
	}
	for _, m := range []struct{ volume, path, secret string }{
		{"member-peer-tls", peerTLSPath, certs.peer.name},
		{"member-server-tls", serverTLSPath, certs.server.name},
	} {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: m.volume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: m.secret, DefaultMode: mode},
		}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{
			Name: m.volume, MountPath: m.path, ReadOnly: true,
		})
	}
}
