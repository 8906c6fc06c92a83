package objects

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/operators/etcd/members"
)

// The names of a member's ports.
const (
	clientPortName  = "client"
	peerPortName    = "peer"
	metricsPortName = "metrics"
)

// metricsPort is where a member serves metrics and its health, without TLS.
const metricsPort = 2381

// ClusterKind is the kind EtcdCluster.
var ClusterKind = v1beta2.GroupVersion.WithKind("EtcdCluster")

// OwnedBy is the owner reference of objects that are applied.
func OwnedBy(ec *v1beta2.EtcdCluster) *metav1ac.OwnerReferenceApplyConfiguration {
	return apply.OwnerReference(ec, ClusterKind)
}

// ControlledBy is the owner reference of objects that are created and not applied.
func ControlledBy(ec *v1beta2.EtcdCluster) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(ec, ClusterKind)}
}

// PeerService gives the members their names. They have to find each other before any of them is
// ready: readiness takes a quorum.
func PeerService(ec *v1beta2.EtcdCluster) *corev1ac.ServiceApplyConfiguration {
	return service(ec, ec.Name).WithSpec(corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithClusterIP(corev1.ClusterIPNone).
		WithPublishNotReadyAddresses(true).
		WithSelector(Selector(ec)).
		WithPorts(port(clientPortName, members.ClientPort), port(peerPortName, members.PeerPort)))
}

// ClientService is the Service for clients, of the members that serve: of all that are ready, or of those that are marked
// as voters, too.
func ClientService(ec *v1beta2.EtcdCluster, toMarked bool) *corev1ac.ServiceApplyConfiguration {
	selector := Selector(ec)
	if toMarked {
		selector[VoterLabel] = "true"
	}
	return service(ec, ClientServiceName(ec)).WithSpec(corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithSelector(selector).
		WithPorts(port(clientPortName, members.ClientPort)))
}

func service(ec *v1beta2.EtcdCluster, name string) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name, ec.Namespace).
		WithLabels(CommonLabels(ec)).
		WithOwnerReferences(OwnedBy(ec))
}

func port(name string, number int32) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().
		WithName(name).
		WithProtocol(corev1.ProtocolTCP).
		WithPort(number).
		WithTargetPort(intstr.FromInt32(number))
}

// HasBudget says whether there is to be a PodDisruptionBudget of the operator's.
func HasBudget(ec *v1beta2.EtcdCluster) bool {
	d := ec.Spec.Disruption
	return d == nil || d.Enabled == nil || *d.Enabled
}

// DisruptionBudget says how many members a drain has to leave. A member that is not ready may be
// evicted only while enough others are: without a quorum none of them is ready, and without volumes
// each of them may have the last copy of the data. If none has to be left, any may go: with the usual policy Kubernetes
// would then keep those that are not ready.
func DisruptionBudget(ec *v1beta2.EtcdCluster, leastAvailable int) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	unready := policyv1.IfHealthyBudget
	if leastAvailable == 0 {
		unready = policyv1.AlwaysAllow
	}
	return policyv1ac.PodDisruptionBudget(ec.Name, ec.Namespace).
		WithLabels(CommonLabels(ec)).
		WithOwnerReferences(OwnedBy(ec)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMinAvailable(intstr.FromInt(leastAvailable)).
			WithUnhealthyPodEvictionPolicy(unready).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(ec))))
}

// Evictable is how many members may be away at a time. With volumes it is as many as leave a
// quorum, and one of a cluster of one or two, which does not serve until the member is back with
// its data. Without volumes a member that is evicted is lost and has to be replaced, so it is one,
// and none of a cluster of one or two: that blocks a drain until somebody decides.
func Evictable(ec *v1beta2.EtcdCluster, voters int) int {
	spare := voters - Majority(voters)
	if HasVolumes(ec) {
		return max(spare, min(voters, 1))
	}
	return max(min(spare, 1), 0)
}
