package objects

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators/etcd/members"
)

// Operator is that of the operator.
const Operator = "etcd"

// ManagedBy is the label that says so of objects.
var ManagedBy = run.ManagedBy(Operator)

// The labels that users of the CoreOS operator select pods by.
const (
	AppLabel     = "app"
	ClusterLabel = "etcd_cluster"
	NodeLabel    = "etcd_node"
)

// VoterLabel is true on the pods of voters. The Service for clients leads to these only: a learner is as ready as a voter
// is, and refuses most of what clients want.
const VoterLabel = "etcd.database.coreos.com/voter"

// letters are those of which Kubernetes makes the random ends of names: no vowels, and nothing
// that is easily taken for something else.
const letters = "bcdfghjklmnpqrstvwxz2456789"

// namePlaces is the number of letters at the end of a member's name.
const namePlaces = 5

// MemberName is the name of the n-th member: the same for every operator that asks, and never
// that of another member of the cluster. The numbers below 27^5 are put in an order of the
// cluster's own: n times a factor that has no divisor in common with 27, plus an offset.
func MemberName(ec *v1beta2.EtcdCluster, n int64) string {
	const base = uint64(len(letters))
	sum := sha256.Sum256([]byte(ec.UID))
	names := uint64(1)
	for range namePlaces {
		names *= base
	}
	factor := binary.BigEndian.Uint64(sum[:8]) % names
	if factor%3 == 0 {
		factor++
	}
	offset := binary.BigEndian.Uint64(sum[8:16]) % names
	number := (uint64(n)%names*factor + offset) % names
	end := make([]byte, namePlaces)
	for i := range end {
		end[i] = letters[number%base]
		number /= base
	}
	return ec.Name + "-" + string(end)
}

// domainOf is the DNS name under which the members' names are.
func domainOf(ec *v1beta2.EtcdCluster) string { return ec.Name + "." + ec.Namespace + ".svc" }

// HostOf is the DNS name of a member.
func HostOf(ec *v1beta2.EtcdCluster, member string) string {
	host := member + "." + domainOf(ec)
	if ec.Spec.Pod != nil && ec.Spec.Pod.ClusterDomain != "" {
		host += "." + ec.Spec.Pod.ClusterDomain
	}
	return host
}

func scheme(ec *v1beta2.EtcdCluster) string {
	if ec.Spec.TLS != nil {
		return "https"
	}
	return "http"
}

// PeerURLOf is where the other members find a member.
func PeerURLOf(ec *v1beta2.EtcdCluster, member string) string {
	return members.PeerURL(scheme(ec), HostOf(ec, member))
}

// MemberOfPeerURL is the member that a peer URL is of, if it is one of this cluster's names. The
// domain of the Kubernetes cluster does not matter: members keep the URL that they were added
// with when spec.pod.ClusterDomain changes.
func MemberOfPeerURL(ec *v1beta2.EtcdCluster, peerURL string) (string, bool) {
	parsed, err := url.Parse(peerURL)
	if err != nil || parsed.Port() != strconv.Itoa(members.PeerPort) {
		return "", false
	}
	member, domain, found := strings.Cut(parsed.Hostname(), ".")
	if !found || !strings.HasPrefix(member, ec.Name+"-") {
		return "", false
	}
	if domain != domainOf(ec) && !strings.HasPrefix(domain, domainOf(ec)+".") {
		return "", false
	}
	return member, true
}

// EndpointOf is where a member's pod serves clients.
func EndpointOf(ec *v1beta2.EtcdCluster, pod *corev1.Pod) members.Endpoint {
	return members.Endpoint{
		Address:    net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(members.ClientPort)),
		ServerName: HostOf(ec, pod.Name),
	}
}

// ClientServiceName is the name of the Service for clients.
func ClientServiceName(ec *v1beta2.EtcdCluster) string { return ec.Name + "-client" }

// claimName is the name of a member's volume.
func claimName(member string) string { return member }

// Selector has the labels that all pods of a cluster have, and no others.
func Selector(ec *v1beta2.EtcdCluster) map[string]string {
	return map[string]string{AppLabel: Operator, ClusterLabel: ec.Name}
}

// CommonLabels are those of every object of a cluster.
func CommonLabels(ec *v1beta2.EtcdCluster) map[string]string {
	all := podtemplate.Labels(Operator, ec.Name)
	maps.Copy(all, Selector(ec))
	return all
}

// labels are those of a member's pod and volume, the user's among them.
func labels(ec *v1beta2.EtcdCluster, member string) map[string]string {
	all := map[string]string{}
	if ec.Spec.Pod != nil {
		maps.Copy(all, ec.Spec.Pod.Labels)
		delete(all, VoterLabel)
	}
	maps.Copy(all, CommonLabels(ec))
	all[NodeLabel] = member
	return all
}

// HasVolumes says whether members have volumes.
func HasVolumes(ec *v1beta2.EtcdCluster) bool {
	return ec.Spec.Pod != nil && ec.Spec.Pod.PersistentVolumeClaimSpec != nil
}

// IsOwned says whether an object is the EtcdCluster's.
func IsOwned(ec *v1beta2.EtcdCluster, obj client.Object) bool { return apply.Owns(ManagedBy, ec, obj) }

// Key is the namespace and name of an EtcdCluster.
func Key(ec *v1beta2.EtcdCluster) types.NamespacedName {
	return types.NamespacedName{Namespace: ec.Namespace, Name: ec.Name}
}

// IsOurs says whether a name is one that a member which the operator runs can have.
func IsOurs(ec *v1beta2.EtcdCluster, name string) bool { return strings.HasPrefix(name, ec.Name+"-") }

// IsMemberName says whether a name is one of those that [MemberName] makes.
func IsMemberName(ec *v1beta2.EtcdCluster, name string) bool {
	end, found := strings.CutPrefix(name, ec.Name+"-")
	return found && len(end) == namePlaces && strings.Trim(end, letters) == ""
}

// ClientURLs are where clients reach the members that status has.
func ClientURLs(ec *v1beta2.EtcdCluster) []string {
	var all []string
	for _, m := range ec.Status.MemberList {
		if IsOurs(ec, m.Name) {
			all = append(all, fmt.Sprintf("%s://%s:%d", scheme(ec), HostOf(ec, m.Name), members.ClientPort))
		}
	}
	return all
}

// Majority is the quorum of that many voters.
func Majority(voters int) int { return voters/2 + 1 }
