package v1beta2

// JoinSource is a running etcd that is taken over.
//
// +kubebuilder:validation:XValidation:rule="self.etcdEndpoints.all(e, e.startsWith('https://')) || self.etcdEndpoints.all(e, e.startsWith('http://'))",fieldPath=".etcdEndpoints",message="the endpoints must be either all https or all http"
// +kubebuilder:validation:XValidation:rule="self.etcdEndpoints.all(e, e.startsWith('https://')) == has(self.clientTLSSecret)",fieldPath=".clientTLSSecret",message="clientTLSSecret is for endpoints with https, and they need it"
type JoinSource struct {
	// etcdEndpoints are the URLs at which the operator reaches the members of the running etcd, one
	// for each of them, such as http://my-etcd-0.my-etcd-headless.shop.svc:2379: all http, or all
	// https. The operator is in another namespace, so short names do not do, and neither does a
	// Service that leads to any of them. `Ready` has the reason JoinEndpointMissing if one is
	// missing, and JoinUnreachable if one does not answer. By the host name of a pod, such as the one
	// above, the operator sees when a member was stopped, and removes it from the member list; others
	// the user removes.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^https?://[^\s/@?#]+:[0-9]{1,5}/?$`
	EtcdEndpoints []string `json:"etcdEndpoints"`

	// clientTLSSecret is the name of a Secret in the EtcdCluster's namespace with a client's
	// certificate for etcdEndpoints with https: etcd-client.crt, etcd-client.key and
	// etcd-client-ca.crt, or tls.crt, tls.key and ca.crt. `Ready` has the reason SecretNotFound or
	// InvalidSecret if it does not do.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClientTLSSecret string `json:"clientTLSSecret,omitempty"`

	// goBack makes the members of this EtcdCluster leave the etcd that they have joined. When `Ready`
	// has the reason JoinUndone, the EtcdCluster can be deleted. It has no effect from
	// status.join.phase Replacing on: the operator removes members of before. Defaults to false.
	// +optional
	GoBack bool `json:"goBack,omitempty"`
}

// JoinPhase is how far a take-over has got.
// +kubebuilder:validation:Enum=Joining;Joined;Replacing;Complete
type JoinPhase string

// The phases.
const (
	// JoinJoining is until all members of the EtcdCluster vote, and one of them leads.
	JoinJoining JoinPhase = "Joining"
	// JoinJoined is until the first member of before was stopped, and its pod is gone. Until then, spec.joinFrom.goBack has
	// an effect.
	JoinJoined JoinPhase = "Joined"
	// JoinReplacing is until the last member of before is removed.
	JoinReplacing JoinPhase = "Replacing"
	// JoinComplete is when there are no other members than those of the EtcdCluster.
	JoinComplete JoinPhase = "Complete"
)

// Join is how far the take-over of a running etcd has got.
type Join struct {
	// phase is Joining, Joined, Replacing or Complete. It never goes back.
	// +required
	Phase JoinPhase `json:"phase"`

	// nextToStop is the member of before that is to be stopped next; empty if none is to be stopped yet.
	// +optional
	NextToStop string `json:"nextToStop,omitempty"`
}
