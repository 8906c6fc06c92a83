package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdCluster is a cluster of etcd members: a pod each, with a volume where the spec requests
// one, the headless Service `<name>`, the Service `<name>-client`, and a PodDisruptionBudget.
//
// A drain of nodes may take as many members at a time as leave a quorum, and one of a cluster of
// one or two, which does not serve until that is back with its data. Without volumes an evicted
// member is lost and replaced: then it is one at a time, and clusters of one or two members block
// the drain.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.size,selectorpath=.status.selector
// +kubebuilder:resource:path=etcdclusters,singular=etcdcluster,shortName=etcd
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyMembers`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.currentVersion`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Phase",type=string,priority=1,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Target",type=string,priority=1,JSONPath=`.status.targetVersion`
// +kubebuilder:printcolumn:name="Leader",type=string,priority=1,JSONPath=`.status.leader`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="the name must be at most 40 characters long: the pods' names, <name>-<random>, are host names"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must be a DNS label that begins with a letter: it is that of a Service"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec.joinFrom) || has(self.spec.joinFrom) || !has(oldSelf.status.join) || oldSelf.status.join.phase == 'Complete'",message="joinFrom can be removed when status.join.phase is Complete: until then there are members of before. To undo it, set joinFrom.goBack to true before the first of them is removed"
type EtcdCluster struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state. All fields are optional: an empty spec is a cluster of three
	// members without volumes.
	// +optional
	// +kubebuilder:default={}
	Spec EtcdClusterSpec `json:"spec,omitempty"`

	// status is the observed state. Written by the operator.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status EtcdClusterStatus `json:"status,omitempty"`
}

// EtcdClusterList is a list of EtcdClusters.
//
// +kubebuilder:object:root=true
type EtcdClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdCluster `json:"items"`
}

// EtcdClusterSpec is the desired state of a cluster.
//
// +kubebuilder:validation:XValidation:rule="has(self.TLS) == has(oldSelf.TLS)",fieldPath=".TLS",message="TLS cannot be turned on or off for a cluster that exists: members with and without it cannot talk to each other. Create another cluster, and copy the data"
// +kubebuilder:validation:XValidation:rule="!has(self.joinFrom) || has(oldSelf.joinFrom)",fieldPath=".joinFrom",message="joinFrom is for a new EtcdCluster, and this one has begun without it: create another one"
// +kubebuilder:validation:XValidation:rule="(has(self.pod) && has(self.pod.persistentVolumeClaimSpec)) == (has(oldSelf.pod) && has(oldSelf.pod.persistentVolumeClaimSpec))",fieldPath=".pod.persistentVolumeClaimSpec",message="volumes cannot be added to or taken from a cluster that exists"
type EtcdClusterSpec struct {
	// size is the number of members, from 1 to 9. An odd number is best: one more member than
	// an odd number tolerates no more failures. `kubectl scale` changes it, and members are
	// added, as learners first, or removed one at a time. Defaults to 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Size int32 `json:"size,omitempty"`

	// repository is the image without its tag. Defaults to quay.io/coreos/etcd.
	// +optional
	// +kubebuilder:default="quay.io/coreos/etcd"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\s@]+$`
	Repository string `json:"repository,omitempty"`

	// version is the version of etcd, such as 3.6.16; a leading v is left out. The image is
	// `<repository>:v<version>`. A change is rolled out one member at a time, and through the
	// minor versions between, of which the operator knows the patch releases to use. A
	// downgrade is possible by one minor version, from 3.6 on. Defaults to 3.6.16.
	// +optional
	// +kubebuilder:default="3.6.16"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v?3\.[0-9]{1,3}\.[0-9]{1,4}(-[0-9A-Za-z.-]+)?$`
	Version string `json:"version,omitempty"`

	// paused means hands off: the operator changes nothing of the cluster, and status shows
	// what it sees. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// pod is about the members' pods.
	// +optional
	Pod *PodPolicy `json:"pod,omitempty"`

	// TLS turns TLS on, between members and with clients. It cannot be turned on or off later.
	// +optional
	TLS *TLSPolicy `json:"TLS,omitempty"`

	// auth turns etcd's authentication on, once the cluster serves: from then on etcd refuses every client that is not
	// one of its users. Without it the operator leaves authentication as it is. Taking it away does not turn
	// authentication off: that is for `etcdctl auth disable`, afterwards.
	// +optional
	Auth *AuthPolicy `json:"auth,omitempty"`

	// disruption is about the PodDisruptionBudget `<name>`, by which drains leave a quorum.
	// +optional
	Disruption *DisruptionPolicy `json:"disruption,omitempty"`

	// keepHistory is for how long etcd keeps the earlier revisions of keys, such as 1h, in
	// whole minutes, at least 5m. 0s keeps them until a member's database is full; then the
	// operator drops them. A change applies to a member when it is next started. Defaults to 0s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || (duration(self) >= duration('5m') && duration(self).getSeconds() % 60 == 0)",message="must be 0s, or at least 5m in whole minutes"
	KeepHistory *metav1.Duration `json:"keepHistory,omitempty"`

	// acceptDataLoss answers the loss of quorum. It is status.quorumLoss.id of the loss that it
	// is meant for, and nothing else has any effect. The operator then starts the cluster again
	// from the most advanced member that survives, with a new cluster ID; writes that only the
	// lost members had are lost.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AcceptDataLoss string `json:"acceptDataLoss,omitempty"`

	// recoverFrom is the backup that the cluster is started again from when the loss of quorum is
	// answered by acceptDataLoss, instead of from the most advanced member that survives.
	// +optional
	RecoverFrom *RestoreSource `json:"recoverFrom,omitempty"`

	// adoptExisting takes in pods and volumes of a cluster of this name that are there before this one is
	// founded: those that a backup of the Kubernetes cluster has brought back, or that an EtcdCluster left
	// which was deleted with --cascade=orphan. Members are started for volumes that have no pod. Without it,
	// nothing is founded while there are any, and `Ready` names them. Defaults to false.
	// +optional
	AdoptExisting bool `json:"adoptExisting,omitempty"`

	// joinFrom takes over a running etcd that is not an EtcdCluster's, such as a chart's StatefulSet,
	// while it serves: docs/moving/etcd.md. Members join it as learners, one at a time, and are
	// promoted; when all of spec.size vote, one of them leads. The user then stops the members of
	// before one at a time, each when status.join.nextToStop names it, and the operator removes it
	// from the member list. Until the first is removed, goBack undoes all of it. If authentication
	// is on, auth.rootSecret has root's password. It can be set only when the EtcdCluster is
	// created, and be removed when status.join.phase is Complete. Defaults to none: members form a
	// cluster of their own.
	// +optional
	JoinFrom *JoinSource `json:"joinFrom,omitempty"`

	// baseImage, backup, restore and selfHosted were fields of earlier versions of the CoreOS
	// operator. They have no effect; an event says so.
	// +optional
	BaseImage string `json:"baseImage,omitempty"`
	// backup has no effect, see baseImage.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Backup *IgnoredField `json:"backup,omitempty"`
	// restore has no effect, see baseImage.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Restore *IgnoredField `json:"restore,omitempty"`
	// selfHosted has no effect, see baseImage.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	SelfHosted *IgnoredField `json:"selfHosted,omitempty"`
}

// JoinSource is a running etcd that is taken over.
//
// +kubebuilder:validation:XValidation:rule="self.etcdEndpoints.all(e, e.startsWith('https://')) || self.etcdEndpoints.all(e, e.startsWith('http://'))",fieldPath=".etcdEndpoints",message="the endpoints must be either all https or all http"
// +kubebuilder:validation:XValidation:rule="self.etcdEndpoints.all(e, e.startsWith('https://')) == has(self.clientTLSSecret)",fieldPath=".clientTLSSecret",message="clientTLSSecret is for endpoints with https, and they need it"
type JoinSource struct {
	// etcdEndpoints are the URLs at which the operator reaches the members of the running etcd, one
	// for each of them, such as http://my-etcd-0.my-etcd-headless.shop.svc:2379: all http, or all
	// https. The operator is in another namespace, so short names do not do, and neither does a
	// Service that leads to any of them. `Ready` has the reason JoinEndpointMissing if one is
	// missing, and JoinUnreachable if one does not answer.
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
	// status.join.phase Replacing on: a member of before was stopped. Defaults to false.
	// +optional
	GoBack bool `json:"goBack,omitempty"`
}

// IgnoredField is an object of which nothing is read.
type IgnoredField struct{}

// PodPolicy is about the members' pods. A change of it applies at once, one member at a time,
// where there are volumes. Without volumes it applies to pods that are created later, because
// to replace a pod would be to lose its data.
type PodPolicy struct {
	// labels are added to the pods. `app` and those that begin with `etcd_` or
	// `app.kubernetes.io/` are reserved.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'app' && !k.startsWith('etcd_') && !k.startsWith('app.kubernetes.io/'))",message="app, and labels that begin with etcd_ or app.kubernetes.io/, are the operator's: choose other labels"
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the pods. Those that begin with `etcd` are reserved.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('etcd.') && !k.startsWith('etcd-operator/'))",message="annotations that begin with etcd. or etcd-operator/ are the operator's: choose other annotations"
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodeSelector has the labels of the nodes that pods may be scheduled to.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// affinity is the pods' affinity. Without it and topologySpreadConstraints, pods are spread over
	// zones, then over nodes, as far as there are any.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints are the pods' topology spread constraints. One without a
	// labelSelector is about the members of this cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// antiAffinity, deprecated by the CoreOS operator in favour of affinity, keeps two members
	// off the same node even if one cannot be scheduled then.
	// +optional
	AntiAffinity bool `json:"antiAffinity,omitempty"`

	// resources are those of the container etcd.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// tolerations are the pods' tolerations.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// priorityClassName is the name of the pods' PriorityClass. Defaults to the Kubernetes cluster's default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// serviceAccountName is the name of the pods' ServiceAccount, for what is bound to it, such as
	// image pull secrets. Its token is not mounted: etcd has no use for it. Defaults to default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// imagePullSecrets are the Secrets that images are pulled with.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// dnsConfig is added to the DNS settings of the Kubernetes cluster that the pods have.
	// +optional
	DNSConfig *corev1.PodDNSConfig `json:"dnsConfig,omitempty"`

	// etcdEnv are environment variables of etcd, such as ETCD_QUOTA_BACKEND_BYTES. Those that the
	// operator sets are ignored, such as ETCD_NAME or those of TLS, and ETCD_CONFIG_FILE and
	// ETCD_DISCOVERY and the like, which would have etcd ignore the rest.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	EtcdEnv []corev1.EnvVar `json:"etcdEnv,omitempty"`

	// persistentVolumeClaimSpec requests a volume for each member. Without it, a member's data
	// is lost with its pod. A greater request for storage grows the volumes where the storage
	// class allows that; no other change of it applies to volumes that exist.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.requests) || !('storage' in self.resources.requests) || !has(oldSelf.resources) || !has(oldSelf.resources.requests) || !('storage' in oldSelf.resources.requests) || quantity(string(self.resources.requests['storage'])).compareTo(quantity(string(oldSelf.resources.requests['storage']))) >= 0",fieldPath=".resources",message="a volume cannot shrink: request at least as much storage as before"
	PersistentVolumeClaimSpec *corev1.PersistentVolumeClaimSpec `json:"persistentVolumeClaimSpec,omitempty"`

	// busyboxImage is of no use any more: members wait for their names themselves. Ignored.
	// +optional
	BusyboxImage string `json:"busyboxImage,omitempty"`

	// securityContext is the pods' security context. It replaces the operator's, which meets
	// the restricted Pod Security Standard.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// DNSTimeoutInSecond was how long a pod waited for its name. Ignored: etcd is started
	// again until its name resolves.
	// +optional
	DNSTimeoutInSecond int64 `json:"DNSTimeoutInSecond,omitempty"`

	// ClusterDomain is the domain of the Kubernetes cluster, such as cluster.local, and is
	// appended to the members' names. Defaults to none: names end in .svc.
	// +optional
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ClusterDomain string `json:"ClusterDomain,omitempty"`
}

// DisruptionPolicy is about the PodDisruptionBudget.
type DisruptionPolicy struct {
	// enabled says whether there is a PodDisruptionBudget of the operator's. It follows the number
	// of voting members, and allows no eviction while there is a learner, or where the operator moves
	// members off cordoned nodes itself. false is for a budget of your own: Kubernetes refuses every
	// eviction of a pod that has two. Yours must then keep a quorum: minAvailable of 2 for 3 members,
	// 3 for 5, and a drain does not wait for new members. Without one, drains can stop so many members
	// that the cluster does not serve, and a cluster without volumes can lose its data. Defaults to true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// AuthPolicy is about etcd's authentication.
type AuthPolicy struct {
	// rootSecret is the name of a Secret with root's password, by which the operator works, under the key `password` or
	// `etcd-root-password`. A `username` has to be root. If etcd has a user root before authentication is on, it gets
	// this password. Later, under TLS.generated, the operator changes root's password in etcd when the Secret changes;
	// otherwise change it in etcd first, with `etcdctl user passwd root`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RootSecret string `json:"rootSecret"`
}

// TLSPolicy says where certificates are from.
//
// +kubebuilder:validation:XValidation:rule="has(self.static) != has(self.generated)",message="set either static, with Secrets of yours, or generated"
type TLSPolicy struct {
	// static has the names of Secrets, such as those that cert-manager writes. A change of a
	// certificate applies without a restart, a change of a CA with one, a member at a time.
	// +optional
	Static *StaticTLS `json:"static,omitempty"`

	// generated has the operator make a CA and certificates, and renew them in time.
	// +optional
	Generated *GeneratedTLS `json:"generated,omitempty"`
}

// StaticTLS has the names of Secrets with certificates.
//
// +kubebuilder:validation:XValidation:rule="has(self.member) && has(self.operatorSecret)",message="set member.peerSecret, member.serverSecret and operatorSecret: all three are needed"
type StaticTLS struct {
	// member has the Secrets of the members.
	// +optional
	Member *MemberSecret `json:"member,omitempty"`

	// operatorSecret has the certificate with which the operator is a client: etcd-client.crt,
	// etcd-client.key and etcd-client-ca.crt, or tls.crt, tls.key and ca.crt.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	OperatorSecret string `json:"operatorSecret,omitempty"`
}

// MemberSecret has the names of the members' Secrets.
//
// +kubebuilder:validation:XValidation:rule="has(self.peerSecret) && has(self.serverSecret)",message="set both peerSecret and serverSecret"
type MemberSecret struct {
	// peerSecret has what members show each other: peer.crt, peer.key and peer-ca.crt, or tls.crt,
	// tls.key and ca.crt. The certificate must be valid for `*.<name>.<namespace>.svc`, as a
	// server's and as a client's, and for `*.<name>.<namespace>.svc.cluster.local`, or whatever the
	// domain of the Kubernetes cluster is: etcd looks up where a peer comes from.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PeerSecret string `json:"peerSecret,omitempty"`

	// serverSecret has what members show clients: server.crt, server.key and server-ca.crt, or
	// tls.crt, tls.key and ca.crt. The certificate must be valid for
	// `*.<name>.<namespace>.svc`, `<name>-client.<namespace>.svc` and `localhost`.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServerSecret string `json:"serverSecret,omitempty"`
}

// GeneratedTLS is about certificates that the operator makes. They are in the Secrets
// `<name>-peer-tls`, `<name>-server-tls` and `<name>-client-tls`, the last of which is for clients.
type GeneratedTLS struct {
	// validFor is how long a certificate is valid, such as 2160h. It is renewed when a third of
	// that is left. At least 1h. Defaults to 2160h, which is 90 days.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h')",message="must be at least 1h"
	ValidFor *metav1.Duration `json:"validFor,omitempty"`

	// caValidFor is how long a CA is valid. A new one is made, and members are restarted one at
	// a time, when a third of that is left. At least three times validFor. Defaults to 87600h,
	// which is ten years.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('3h')",message="must be at least 3h"
	CAValidFor *metav1.Duration `json:"caValidFor,omitempty"`
}

// Phase is the state of a cluster in the words of the CoreOS operator.
// +kubebuilder:validation:Enum="";Creating;Running;Failed
type Phase string

// The phases. Failed means that nothing happens until the user acts.
const (
	PhaseNone     Phase = ""
	PhaseCreating Phase = "Creating"
	PhaseRunning  Phase = "Running"
	PhaseFailed   Phase = "Failed"
)

// The types of the conditions that are not those of kstatus (Ready, Reconciling, Stalled).
const (
	// ConditionAvailable is true while a quorum of members serves.
	ConditionAvailable = "Available"
	// ConditionRecovering is true while lost members are replaced, or the quorum is.
	ConditionRecovering = "Recovering"
	// ConditionScaling is true while the number of members is not spec.size.
	ConditionScaling = "Scaling"
	// ConditionUpgrading is true while members have another version than spec.version.
	ConditionUpgrading = "Upgrading"
)

// EtcdClusterStatus is the observed state of a cluster.
type EtcdClusterStatus struct {
	// observedGeneration is the generation of the spec that this status is about; -1 until the operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is empty, Creating, Running or Failed.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// reason says why phase is Failed.
	// +optional
	Reason string `json:"reason,omitempty"`

	// controlPaused is spec.paused.
	// +optional
	ControlPaused bool `json:"controlPaused,omitempty"`

	// conditions are Ready, Reconciling, Stalled, Available, Recovering, Scaling, Upgrading and Overruled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// size is the number of members.
	// +optional
	Size int32 `json:"size"`

	// readyMembers is the number of members that serve.
	// +optional
	ReadyMembers int32 `json:"readyMembers"`

	// selector is that of the members' pods, for `kubectl scale`.
	// +optional
	Selector string `json:"selector,omitempty"`

	// serviceName is the name of the Service for clients.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// clientPort is the port of that Service.
	// +optional
	ClientPort int32 `json:"clientPort,omitempty"`

	// members are the names of the members' pods.
	// +optional
	Members MembersStatus `json:"members"`

	// currentVersion is the version of etcd that all members have, or the lowest.
	// +optional
	CurrentVersion string `json:"currentVersion,omitempty"`

	// targetVersion is the version that members are being changed to; empty if none.
	// +optional
	TargetVersion string `json:"targetVersion,omitempty"`

	// leader is the name of the member that leads.
	// +optional
	Leader string `json:"leader,omitempty"`

	// clusterID is etcd's ID of the cluster, in hexadecimal. It is the operator's memory of
	// which cluster this is: members of any other are never joined.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// memberList has what is known of each member, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	MemberList []MemberStatus `json:"memberList,omitempty"`

	// memberNamesUsed is the number of names that members were ever given. It is counted before a member is
	// created, so that no two members have the same name.
	// +optional
	MemberNamesUsed int64 `json:"memberNamesUsed,omitempty"`

	// memberBeingAdded is the name of the member that is being added, from before it is in etcd's member list.
	// +optional
	MemberBeingAdded string `json:"memberBeingAdded,omitempty"`

	// memberBeingUpdated is the name of the member that is being changed to another version, CA or pod. No other
	// member is changed until it is complete.
	// +optional
	MemberBeingUpdated string `json:"memberBeingUpdated,omitempty"`

	// dataPreparedFor is the minor version, such as 3.7, that the members' data was prepared for before an
	// upgrade to it.
	// +optional
	DataPreparedFor string `json:"dataPreparedFor,omitempty"`

	// maintenance is the compaction or defragmentation of a member that is under way, from before the member is
	// asked for it. Until it is over, nothing else is changed of the members.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty"`

	// fullDatabase is how far the operator has got with a database that is full. It is empty again once there are
	// writes, and no member is left whose file is still to be defragmented.
	// +optional
	FullDatabase *FullDatabase `json:"fullDatabase,omitempty"`

	// founders are the members that the cluster begins with, or began with.
	// +optional
	// +listType=atomic
	Founders []string `json:"founders,omitempty"`

	// quorumLoss is there while the cluster has lost so many members that it cannot go on.
	// +optional
	QuorumLoss *QuorumLoss `json:"quorumLoss,omitempty"`

	// recovered says from where the cluster was last started again after a loss of quorum.
	// +optional
	Recovered *Recovered `json:"recovered,omitempty"`

	// restoring is the restore that is under way, from before anything is done for it.
	// +optional
	Restoring *Restoring `json:"restoring,omitempty"`

	// restored is the last restore that came to an end, whether it failed or not.
	// +optional
	Restored *Restored `json:"restored,omitempty"`

	// join is how far the take-over of spec.joinFrom has got, from before anything is changed of that etcd.
	// +optional
	Join *Join `json:"join,omitempty"`

	EarlierClusterStatus `json:",inline"`
}

// JoinPhase is how far a take-over has got.
// +kubebuilder:validation:Enum=Joining;Joined;Replacing;Complete
type JoinPhase string

// The phases.
const (
	// JoinJoining is until all members of the EtcdCluster vote, and one of them leads.
	JoinJoining JoinPhase = "Joining"
	// JoinJoined is until the first member of before was stopped. Until then, spec.joinFrom.goBack has an effect.
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

// MembersStatus has the names of the members' pods.
type MembersStatus struct {
	// ready are the members that serve.
	// +optional
	// +listType=atomic
	Ready []string `json:"ready,omitempty"`

	// unready are the others.
	// +optional
	// +listType=atomic
	Unready []string `json:"unready,omitempty"`
}

// MemberStatus is what is known of a member. What a member that does not answer last said of
// itself is kept.
type MemberStatus struct {
	// name is that of the member and its pod.
	// +required
	Name string `json:"name"`

	// id is etcd's ID of the member, in hexadecimal.
	// +optional
	ID string `json:"id,omitempty"`

	// dataUID is the UID of what has its data: of its volume's claim or, without volumes, of its
	// pod. It is recorded before the member first starts.
	// +optional
	DataUID string `json:"dataUID,omitempty"`

	// version is that of its etcd.
	// +optional
	Version string `json:"version,omitempty"`

	// ready is true if it serves.
	// +optional
	Ready bool `json:"ready"`

	// learner is true for a member that does not vote yet.
	// +optional
	Learner bool `json:"learner,omitempty"`

	// dbSize is the size of its database file, rounded: it changes when that changes by an eighth.
	// +optional
	DBSize *resource.Quantity `json:"dbSize,omitempty"`

	// revision is the revision of the store that it had when its status last changed otherwise.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// alarms are etcd's, such as NOSPACE or CORRUPT.
	// +optional
	// +listType=atomic
	Alarms []string `json:"alarms,omitempty"`

	// problem says why it is not ready.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// MaintenanceType is a request to a member that may take minutes.
// +kubebuilder:validation:Enum=Compaction;Defragmentation
type MaintenanceType string

// The types of maintenance.
const (
	// MaintenanceCompaction drops the history of all keys.
	MaintenanceCompaction MaintenanceType = "Compaction"
	// MaintenanceDefragmentation makes the file of a member's database as small as it can be. The member does not
	// serve meanwhile.
	MaintenanceDefragmentation MaintenanceType = "Defragmentation"
)

// Maintenance is a compaction or defragmentation that is under way.
type Maintenance struct {
	// type is Compaction or Defragmentation.
	// +required
	Type MaintenanceType `json:"type"`

	// member is the member that is asked for it.
	// +required
	Member string `json:"member"`

	// revision is the revision up to which a compaction drops the history.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// startTime is when it was decided.
	// +required
	StartTime metav1.Time `json:"startTime"`

	// deadline is when it counts as over at the latest: then the member is asked again, like any other.
	// +required
	Deadline metav1.Time `json:"deadline"`
}

// FullDatabase is how far the operator has got with a database that is full.
type FullDatabase struct {
	// compactedRevision is the revision up to which the history was dropped.
	// +required
	CompactedRevision int64 `json:"compactedRevision"`

	// defragmentedMembers are the members that were defragmented since then.
	// +optional
	// +listType=atomic
	DefragmentedMembers []string `json:"defragmentedMembers,omitempty"`

	// resolvedTime is when the last alarm was gone.
	// +optional
	ResolvedTime *metav1.Time `json:"resolvedTime,omitempty"`
}

// QuorumLoss is a loss of quorum.
type QuorumLoss struct {
	// id is what spec.acceptDataLoss has to be to answer this loss.
	// +required
	ID string `json:"id"`

	// lost are the members whose data is gone.
	// +optional
	// +listType=atomic
	Lost []string `json:"lost,omitempty"`

	// surviving are the members whose data is there, the one to start from first, as far as known.
	// +optional
	// +listType=atomic
	Surviving []string `json:"surviving,omitempty"`

	// accepted is true once the user has answered, from before anything is changed.
	// +optional
	Accepted bool `json:"accepted,omitempty"`

	// from is the member that the cluster is started again from, once that is decided.
	// +optional
	From string `json:"from,omitempty"`
}

// Recovered says how a cluster was started again after a loss of quorum.
type Recovered struct {
	// id is that of the loss.
	// +required
	ID string `json:"id"`

	// member is the member that the cluster was started again from.
	// +required
	Member string `json:"member"`

	// backup is the key of the backup, if it was started from one.
	// +optional
	Backup string `json:"backup,omitempty"`

	// lostRevision is the last revision that is known of the cluster before, if it was started from a backup.
	// +optional
	LostRevision int64 `json:"lostRevision,omitempty"`

	// revision is that member's revision of the store. Whatever was written after it is lost.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// time is when it had started.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// Restoring is a restore that is under way.
type Restoring struct {
	// id is the UID of the EtcdRestore, or the ID of the loss of quorum that it answers.
	// +required
	ID string `json:"id"`

	// name is that of the EtcdRestore; empty for an answer to a loss of quorum.
	// +optional
	Name string `json:"name,omitempty"`

	// source is where the backup is read from, as it was when the restore began.
	// +required
	Source RestoreSource `json:"source"`

	// keepOld is spec.keepOld of the EtcdRestore.
	// +optional
	KeepOld bool `json:"keepOld,omitempty"`

	// seed is the member that reads the backup, and that the restored cluster begins with. If it is
	// lost before that, another one is named.
	// +required
	Seed string `json:"seed"`

	// seedDataUID is the UID of the object that has the seed's data: of its PersistentVolumeClaim or, without
	// volumes, of its pod. It is recorded before the seed first starts.
	// +optional
	SeedDataUID string `json:"seedDataUID,omitempty"`

	// phase is Verifying, Switching or Completing.
	// +required
	Phase RestorePhase `json:"phase"`

	// problem says why it does not go on; it is tried again.
	// +optional
	Problem string `json:"problem,omitempty"`

	// key, revision and clusterID are those of what the seed serves, once it does.
	// +optional
	Key string `json:"key,omitempty"`
	// revision is the revision of the store in the backup.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// clusterID is etcd's ID of the seed's cluster, in hexadecimal.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// lostRevision is the last revision that is known of the cluster before.
	// +optional
	LostRevision int64 `json:"lostRevision,omitempty"`

	// replaced are the members of the cluster before.
	// +optional
	// +listType=atomic
	Replaced []string `json:"replaced,omitempty"`

	// startTime is when it began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// switchTime is when the members of the cluster before began to be stopped.
	// +optional
	SwitchTime *metav1.Time `json:"switchTime,omitempty"`

	EarlierRestoring `json:",inline"`
}

// Restored is a restore that came to an end.
type Restored struct {
	// id is the UID of the EtcdRestore, or the ID of the loss of quorum.
	// +required
	ID string `json:"id"`

	// name is that of the EtcdRestore; empty for an answer to a loss of quorum.
	// +optional
	Name string `json:"name,omitempty"`

	// failureMessage says why it failed, by a reason and a message; empty if it did not. The cluster is then as it was.
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`

	// key is that of the backup.
	// +optional
	Key string `json:"key,omitempty"`
	// revision is the revision of the store in the backup.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// lostRevision is the last revision that is known of the cluster before.
	// +optional
	LostRevision int64 `json:"lostRevision,omitempty"`
	// clusterID is etcd's ID of the restored cluster, in hexadecimal.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// keptPersistentVolumeClaims are the PersistentVolumeClaims of the members before that were kept.
	// +optional
	// +listType=atomic
	KeptPersistentVolumeClaims []string `json:"keptPersistentVolumeClaims,omitempty"`
	// time is when it ended.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	EarlierRestored `json:",inline"`
}

// IDOf is the ID of the loss that was recovered from; empty if there was none.
func (r *Recovered) IDOf() string {
	if r == nil {
		return ""
	}
	return r.ID
}
