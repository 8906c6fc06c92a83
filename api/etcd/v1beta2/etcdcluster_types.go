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
// +kubebuilder:resource:path=etcdclusters,singular=etcdcluster,shortName=etcd,categories=fairlead
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
// +kubebuilder:validation:XValidation:rule="!has(self.quotaBackendBytes) || !has(self.pod) || !has(self.pod.persistentVolumeClaimSpec) || !has(self.pod.persistentVolumeClaimSpec.resources) || !has(self.pod.persistentVolumeClaimSpec.resources.requests) || !('storage' in self.pod.persistentVolumeClaimSpec.resources.requests) || quantity(string(self.pod.persistentVolumeClaimSpec.resources.requests['storage'])).compareTo(quantity(string(self.quotaBackendBytes)).add(quantity('512Mi'))) >= 0",fieldPath=".quotaBackendBytes",message="the volume must have 512Mi more than quotaBackendBytes, for the log; twice quotaBackendBytes is better, as a defragmentation makes a copy"
// +kubebuilder:validation:XValidation:rule="!has(self.pod) || !has(self.pod.etcdEnv) || !self.pod.etcdEnv.exists(e, has(self.quotaBackendBytes) && e.name == 'ETCD_QUOTA_BACKEND_BYTES' || has(self.heartbeatInterval) && e.name == 'ETCD_HEARTBEAT_INTERVAL' || has(self.electionTimeout) && e.name == 'ETCD_ELECTION_TIMEOUT')",message="pod.etcdEnv sets what quotaBackendBytes, heartbeatInterval or electionTimeout set: remove ETCD_QUOTA_BACKEND_BYTES, ETCD_HEARTBEAT_INTERVAL and ETCD_ELECTION_TIMEOUT from it, or the field"
// +kubebuilder:validation:XValidation:rule="(has(self.electionTimeout) ? duration(self.electionTimeout).getMilliseconds() : 1000) >= 5 * (has(self.heartbeatInterval) ? duration(self.heartbeatInterval).getMilliseconds() : 100)",message="electionTimeout, 1s if it is left out, must be at least five times heartbeatInterval, which is 100ms if it is left out"
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

	// keepHistory is for how long etcd keeps the earlier revisions of keys, such as 1h, in whole minutes, at least 5m. It
	// applies to a member when it is next started. If 7/8 of a database's quota are in use before, the operator has the
	// older half of them dropped. 0s keeps them until a database is full and takes no writes; then the operator drops them.
	// Defaults to as long as they take less than half of the room that a database has besides keys: then the operator has
	// the older half of them dropped, while the members serve. Watches that are up to date do not notice.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || (duration(self) >= duration('5m') && duration(self).getSeconds() % 60 == 0)",message="must be 0s, or at least 5m in whole minutes"
	KeepHistory *metav1.Duration `json:"keepHistory,omitempty"`

	// quotaBackendBytes is how large the database of a member may become, such as 8Gi, which is the most that etcd
	// recommends. At least 16Mi; a volume needs 512Mi more, and better twice as much. At that size etcd takes no writes any
	// more, see keepHistory. A change applies as one of pod does. Less than a database has is refused in status: Ready is
	// QuotaRefused. Defaults to ETCD_QUOTA_BACKEND_BYTES in pod.etcdEnv, and without that to etcd's 2Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Mi')) >= 0",message="must be at least 16Mi"
	QuotaBackendBytes *resource.Quantity `json:"quotaBackendBytes,omitempty"`

	// heartbeatInterval is how often the leader tells the others that it leads, such as 300ms: about the time that a packet
	// takes to another member and back. From 10ms to 5s. A change applies as one of pod does. Defaults to etcd's 100ms.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10ms') && duration(self) <= duration('5s')",message="must be from 10ms to 5s"
	HeartbeatInterval *metav1.Duration `json:"heartbeatInterval,omitempty"`

	// electionTimeout is after how long without a heartbeat members elect another leader, such as 3s: at least five times
	// heartbeatInterval, and ten times the time that a packet takes to another member and back. At most 50s. A change
	// applies as one of pod does. Defaults to etcd's 1s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('50s')",message="must be at most 50s"
	ElectionTimeout *metav1.Duration `json:"electionTimeout,omitempty"`

	// keepSuspectVolumes is for how long a volume is kept that has the data of a replaced member, and was not trusted: its
	// data was not that of the other members, etcd could not start with it, or the user had the member replaced.
	// status.keptVolumes has them; who deletes a PersistentVolumeClaim of them lets it go. 0s keeps none. Defaults to 168h.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative"
	KeepSuspectVolumes *metav1.Duration `json:"keepSuspectVolumes,omitempty"`

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
	// while it serves: https://fairlead.example.com/docs/moving/etcd.md. Members join it as learners, one at a time, and are
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

	// annotations are added to the pods. Those that begin with `etcd.` are reserved.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('etcd.'))",message="annotations that begin with etcd. are the operator's: choose other annotations"
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
