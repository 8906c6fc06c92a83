package objects

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/pki"
)

// Certificates are those of a cluster with TLS; the zero value is a cluster without.
type Certificates struct {
	// Peer and server are the Secrets that pods mount.
	Peer, Server MountedSecret
	// CaHash is the hash of the CAs in them. etcd reads certificates anew for each connection, and
	// CAs only when it starts.
	CaHash string
	// Client is the content of the Secret that the operator connects with.
	Client map[string][]byte
	// Expires is when the first of them is not accepted any more; zero if that is not known.
	Expires time.Time
	// Stale are generated Secrets that have to be written, or written anew.
	Stale []StaleSecret
	// Doubt says why members may refuse each other all the same.
	Doubt string
	// Problem is what is wrong with the Secrets.
	Problem *status.Problem
}

// MountedSecret is a Secret that pods mount, and the keys of it that are used.
type MountedSecret struct {
	Name  string
	Files pki.Files
}

// StaleSecret is a Secret as it is, or an empty one, and as it is to be.
type StaleSecret struct {
	Seen client.Object
	Want runtime.ApplyConfiguration
}

// Where pods see the certificates: the paths of the CoreOS operator.
const (
	peerTLSPath   = "/etc/etcdtls/member/peer-tls"
	serverTLSPath = "/etc/etcdtls/member/server-tls"
)

// tlsVariables are what etcd has to know about certificates.
func tlsVariables(certs Certificates) []corev1.EnvVar {
	p, s := certs.Peer.Files, certs.Server.Files
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
func mountCertificates(spec *corev1.PodSpec, certs Certificates, isRestricted bool) {
	var mode *int32
	if isRestricted {
		mode = new(int32(0o440))
	}
	for _, m := range []struct{ volume, path, secret string }{
		{"member-peer-tls", peerTLSPath, certs.Peer.Name},
		{"member-server-tls", serverTLSPath, certs.Server.Name},
	} {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: m.volume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: m.secret, DefaultMode: mode},
		}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{
			Name: m.volume, MountPath: m.path, ReadOnly: true,
		})
	}
}

// use is a Secret, and what it is read for.
type use struct {
	Role pki.Role
	Name string
	// Field is the one of the spec that names it; empty for a generated one.
	Field string
	// CommonName is the user that etcd takes a client for who gives no password. For a generated one.
	CommonName string
}

// operators is where in [SecretsOf] the operator's Secret is.
const operators = 2

// SecretsOf are the Secrets of a cluster with TLS: of the peers, the servers and the operator, and where authentication
// is on and the operator's is generated, of users' clients. These must not be root then; until then they have the operator's.
func SecretsOf(ec *v1beta2.EtcdCluster) []use {
	if s := ec.Spec.TLS.Static; s != nil {
		return []use{
			{Role: pki.Peer, Name: s.Member.PeerSecret, Field: "spec.TLS.static.member.peerSecret"},
			{Role: pki.Server, Name: s.Member.ServerSecret, Field: "spec.TLS.static.member.serverSecret"},
			{Role: pki.Client, Name: s.OperatorSecret, Field: "spec.TLS.static.operatorSecret"},
		}
	}
	all := []use{
		{Role: pki.Peer, Name: ec.Name + "-peer-tls", CommonName: ec.Name + "-peer"},
		{Role: pki.Server, Name: ec.Name + "-server-tls", CommonName: ec.Name + "-server"},
		{Role: pki.Client, Name: ec.Name + "-client-tls", CommonName: members.Root},
	}
	if ec.Spec.Auth != nil {
		all[operators].Name = ec.Name + "-operator-tls"
		all = append(all, use{Role: pki.Client, Name: ec.Name + "-client-tls", CommonName: ec.Name + "-client"})
	}
	return all
}

// SecretNames are the Secrets whose change is news for an EtcdCluster.
func SecretNames(ec *v1beta2.EtcdCluster) (all []string) {
	if ec.Spec.Auth != nil {
		all = append(all, ec.Spec.Auth.RootSecret)
	}
	if ec.Spec.JoinFrom != nil && ec.Spec.JoinFrom.ClientTLSSecret != "" {
		all = append(all, ec.Spec.JoinFrom.ClientTLSSecret)
	}
	if ec.Spec.TLS == nil {
		return all
	}
	for _, u := range SecretsOf(ec) {
		all = append(all, u.Name)
	}
	if ec.Spec.TLS.Generated != nil {
		all = append(all, CASecret(ec))
	}
	return all
}

// CASecret is the name of the Secret with the CA of generated certificates.
func CASecret(ec *v1beta2.EtcdCluster) string { return ec.Name + "-ca-tls" }

// ClientSecret is the name of the Secret with the operator's certificate; empty without TLS.
func ClientSecret(ec *v1beta2.EtcdCluster) string {
	if ec.Spec.TLS == nil {
		return ""
	}
	return SecretsOf(ec)[operators].Name
}
