package objects

import (
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
)

// Elsewhere are the members that the operator does not run and asks all the same, by their URLs: those of the etcd that
// is being taken over.
func Elsewhere(ec *v1beta2.EtcdCluster) map[string]members.Endpoint {
	join := ec.Spec.JoinFrom
	if join == nil || ec.Status.Join != nil && ec.Status.Join.Phase == v1beta2.JoinComplete {
		return nil
	}
	all := map[string]members.Endpoint{}
	for _, text := range join.EtcdEndpoints {
		if u, err := url.Parse(strings.TrimSuffix(text, "/")); err == nil {
			all[text] = members.Endpoint{Address: u.Host, ServerName: u.Hostname()}
		}
	}
	return all
}

// PodOfHost is the pod whose host name that is, as pods of a StatefulSet have one; none if it may be something else, or in
// another Kubernetes cluster.
func PodOfHost(host string) (pod types.NamespacedName, is bool) {
	labels := strings.SplitN(host, ".", 4)
	if len(labels) < 4 || labels[3] != "svc" && labels[3] != "svc.cluster.local" {
		return pod, false
	}
	return types.NamespacedName{Namespace: labels[2], Name: labels[0]}, true
}

// This part of the file keeps the members of an EtcdCluster that is deleted while the members of before are all there:
// without them, those could be no quorum. There is no finalizer, which an operator that is gone could not take away. The
// garbage collector deletes what has no owner any more: so members and the headless Service own each other, too, until
// the first member of before is removed. From then on they have none but the EtcdCluster, and the Service, which has none
// but that.

// MayGoBack says whether the members of the etcd that is being taken over are all there.
func MayGoBack(ec *v1beta2.EtcdCluster) bool {
	j := ec.Status.Join
	return j != nil && (j.Phase == v1beta2.JoinJoining || j.Phase == v1beta2.JoinJoined)
}

// GoesBack says whether the user has the members leave the etcd that is being taken over, and that can be.
func GoesBack(ec *v1beta2.EtcdCluster) bool {
	return ec.Spec.JoinFrom != nil && ec.Spec.JoinFrom.GoBack && MayGoBack(ec)
}

// KeptBy are the owner references of a member that also its Service keeps.
func KeptBy(peers *corev1.Service) []metav1.OwnerReference {
	if peers.UID == "" {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: peers.Name, UID: peers.UID}}
}

// KeptPeerService is [PeerService], which its members' pods keep.
func KeptPeerService(ec *v1beta2.EtcdCluster, pods []*corev1.Pod) *corev1ac.ServiceApplyConfiguration {
	s := PeerService(ec)
	for _, pod := range pods {
		s.WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("Pod").WithName(pod.Name).WithUID(pod.UID))
	}
	return s
}
