package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Memcached is a pool of memcached servers: a Deployment or, with identity
// Stable, a StatefulSet; a headless Service; and a PodDisruptionBudget.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=memcacheds,singular=memcached,shortName=memc,categories=fairlead
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.memory`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Identity",type=string,priority=1,JSONPath=`.spec.identity`
// +kubebuilder:printcolumn:name="Upgrade",type=string,priority=1,JSONPath=`.status.upgrade.kind`
// +kubebuilder:printcolumn:name="Updated",type=integer,priority=1,JSONPath=`.status.upgrade.updated`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Memcached struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state. All fields are optional: an empty spec is one
	// server.
	// +optional
	// +kubebuilder:default={}
	Spec MemcachedSpec `json:"spec,omitempty"`

	// status is the observed state. Written by the operator.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedList is a list of Memcacheds.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memcached `json:"items"`
}

// Identity says whether servers keep their names.
//
// +kubebuilder:validation:Enum=Random;Stable
type Identity string

const (
	// RandomIdentity runs a Deployment: every new pod has a new name.
	RandomIdentity Identity = "Random"
	// StableIdentity runs a StatefulSet: the servers are `<name>-0`, `<name>-1`
	// and so on.
	StableIdentity Identity = "Stable"
)

// UpgradeStrategy says what happens to the cache when servers change.
//
// +kubebuilder:validation:Enum=Cold;Warm
type UpgradeStrategy string

const (
	// ColdUpgrade replaces the servers. The new ones start with an empty cache.
	ColdUpgrade UpgradeStrategy = "Cold"
	// WarmUpgrade restarts the servers in place. They keep their cache.
	WarmUpgrade UpgradeStrategy = "Warm"
)

// MemcachedSpec is the desired state of a pool.
//
// +kubebuilder:validation:XValidation:rule="!has(self.upgrade) || self.upgrade != 'Warm' || (has(self.identity) && self.identity == 'Stable')",fieldPath=".upgrade",message="Warm needs identity Stable: only a server that keeps its pod can keep its cache"
// +kubebuilder:validation:XValidation:rule="!has(self.upgrade) || self.upgrade != 'Warm' || !has(self.extraArgs) || !self.extraArgs.exists(a, a.contains('ext_path'))",fieldPath=".extraArgs",message="a cache with extstore (ext_path) cannot be kept through a restart: leave it out, or choose upgrade Cold"
// +kubebuilder:validation:XValidation:rule="!has(self.maxItemSize) || !has(self.memory) || !quantity(string(self.maxItemSize)).isInteger() || !quantity(string(self.memory)).isInteger() || quantity(string(self.maxItemSize)).asInteger() <= quantity(string(self.memory)).asInteger() / 2",fieldPath=".maxItemSize",message="must be at most half of memory, or memcached refuses to start"
// +kubebuilder:validation:XValidation:rule="!has(self.upgrade) || self.upgrade != 'Warm' || !has(self.memory) || quantity(string(self.memory)).compareTo(quantity('39Mi')) >= 0",fieldPath=".memory",message="must be at least 39Mi with upgrade Warm: memcached then divides all of it among item sizes when it starts, and does not start with less"
// +kubebuilder:validation:XValidation:rule="!has(self.metrics) || !has(self.auth)",fieldPath=".metrics",message="the exporter cannot log in to a server with auth: leave out metrics or auth"
// +kubebuilder:validation:XValidation:rule="!has(self.metrics) || !has(self.port) || !has(self.metrics.port) || self.metrics.port != self.port",fieldPath=".metrics.port",message="must be another port than memcached's"
type MemcachedSpec struct {
	// size is the number of servers, at most 1000. 0 stops all servers, and their
	// caches are lost. `kubectl scale` changes it. Scaling a Stable pool down
	// stops the servers with the highest ordinals and leaves the others alone.
	// Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Size *int32 `json:"size,omitempty"`

	// identity says whether servers keep their names. Random runs a Deployment: a
	// server that is replaced gets a new name and address, and clients that hash
	// keys over the servers then look for most keys on another server. Stable runs
	// a StatefulSet: the servers are always `<name>-0`, `<name>-1` and so on, so
	// keys stay where they are. A change empties the cache: the new servers start,
	// then the old ones stop. Defaults to Random.
	// +optional
	// +kubebuilder:default=Random
	Identity Identity `json:"identity,omitempty"`

	// upgrade says what happens to the cache when version, image, threads or
	// maxConnections change. Cold replaces the servers one after the other, and
	// each starts empty. Warm, which needs identity Stable, restarts them in
	// place, one at a time, with their cache. Each is unavailable for about a
	// second and misses what clients write or delete during that time, so a key
	// that is deleted then still exists afterwards: choose Warm only where that
	// does no harm. Other changes of the servers are cold unless their field says
	// otherwise, and so is a change of upgrade to or from Warm. status.upgrade
	// announces a cold change before it begins. Defaults to Cold.
	// +optional
	// +kubebuilder:default=Cold
	Upgrade UpgradeStrategy `json:"upgrade,omitempty"`

	// version is the version of memcached, such as 1.6.45. The image is then
	// `memcached:<version>`. Ignored if image is set. With upgrade Warm, a change
	// from 1.6.25 or later to a version before 1.6.25 is still cold. The condition
	// KnownFaults names a version by which a client can end a server. Defaults to
	// 1.6.45; a pool keeps the default of the time at which it was created.
	// +optional
	// +kubebuilder:default="1.6.45"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+[.][0-9]+[.][0-9]+([-.][0-9A-Za-z.-]+)?$')",message="must be a version of memcached with three numbers, such as 1.6.45 or 1.6.45-alpine"
	Version string `json:"version,omitempty"`

	// image is the container image of memcached. Defaults to
	// `memcached:<version>`. It must have memcached in its PATH and, with identity
	// Stable, auth or tls, a shell at /bin/sh. Its tag should be the version,
	// because a warm upgrade reads the version from it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:space:]]+$')",message="must be the name of an image, without spaces, such as memcached:1.6.45"
	Image string `json:"image,omitempty"`

	// memory is how much memory each server has for items (memcached -m), in whole
	// mebibytes, from 8Mi to 16Ti. With upgrade Warm, the minimum is 39Mi, and the
	// memory holds fewer items if they all have about the same size, because
	// memcached divides all of it among item sizes when it starts: with items of
	// 850 bytes, 64Mi holds 28,860 with Warm and 71,040 with Cold. The memory
	// limit of the container is a quarter more, plus 64Mi, plus what many
	// connections take (see maxConnections). With identity Stable and upgrade Cold,
	// servers get more memory while they run, if the cluster can resize pods or the
	// limit is one of podTemplate that has room for it. Every other change of memory
	// is cold (see upgrade). Defaults to 64Mi.
	// +optional
	// +kubebuilder:default="64Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('8Mi')) >= 0",message="must be at least 8Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) <= 0",message="must be at most 16Ti"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) > 0 || quantity(string(self)).isInteger() && quantity(string(self)).asInteger() % 1048576 == 0",message="must be a whole number of mebibytes, such as 64Mi or 4Gi"
	Memory resource.Quantity `json:"memory,omitempty,omitzero"`

	// maxConnections is how many clients can connect to each server (memcached
	// -c), from 64 to 1000000. Each one above 1024 adds 8Ki to the memory limit of
	// the container, 32Ki with tls. With upgrade Warm, a change keeps the cache; if
	// it needs a higher limit, the container gets that while it runs, and where the
	// cluster cannot resize pods, the change is cold. Defaults to 1024.
	// +optional
	// +kubebuilder:default=1024
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=1000000
	MaxConnections int32 `json:"maxConnections,omitempty"`

	// maxItemSize is the size of the largest item (memcached -I): a multiple of
	// 512Ki, at most 1Gi, and at most half of memory. A change is cold (see
	// upgrade). Defaults to 1Mi.
	// +optional
	// +kubebuilder:default="1Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isInteger() && quantity(string(self)).asInteger() >= 524288 && quantity(string(self)).asInteger() <= 1073741824 && quantity(string(self)).asInteger() % 524288 == 0",message="must be a multiple of 512Ki, and 1Gi at most, such as 1Mi"
	MaxItemSize resource.Quantity `json:"maxItemSize,omitempty,omitzero"`

	// threads is the number of threads of each server that answer requests
	// (memcached -t), from 1 to 64. With upgrade Warm, a change keeps the cache.
	// Defaults to 4.
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Threads int32 `json:"threads,omitempty"`

	// extraArgs are further arguments of memcached, such as -v, or -o and modern.
	// The API server rejects arguments that other fields set, arguments that make
	// memcached print something and exit, and -d, -u, -P, -s, -U and -A, in every
	// form that memcached reads, also bundled (-vm9) and abbreviated (--lis). A
	// change is cold (see upgrade).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('^-[^-abfnoBDNR]*[mcItpleYZduPsUAhiV]') && !(a.startsWith('--') && ['memory-limit', 'conn-limit', 'max-item-size', 'threads', 'port', 'listen', 'memory-file', 'auth-file', 'enable-ssl', 'daemon', 'user', 'pidfile', 'unix-socket', 'udp-port', 'enable-shutdown', 'help', 'license', 'version'].exists(l, l.startsWith(a.split('=')[0].substring(2)))))",message="must not have -m -c -I -t -p -l -e -Y -Z -d -u -P -s -U -A -h -i -V, alone or bundled with others, or their long forms, or abbreviations of those: use memory, maxConnections, maxItemSize, threads, port, upgrade, auth and tls"
	ExtraArgs []string `json:"extraArgs,omitempty"`

	// port is the port that the servers listen on, from 1024 to 65535. A change is
	// cold (see upgrade). Defaults to 11211.
	// +optional
	// +kubebuilder:default=11211
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// auth says who can use the cache. By default, everyone who can reach it can.
	// Adding or removing auth is cold (see upgrade); new users and passwords are
	// not.
	// +optional
	Auth *AuthSpec `json:"auth,omitempty"`

	// tls encrypts connections. By default they are not encrypted. Adding or
	// removing tls is cold (see upgrade); a new certificate is not. The memcached
	// in the image must be built with TLS. Not every version of the official image
	// is.
	// +optional
	TLS *TLSSpec `json:"tls,omitempty"`

	// metrics runs an exporter of Prometheus metrics beside each server. By
	// default there is none. It cannot be combined with auth. With identity
	// Stable, a new image of the exporter restarts only the exporter.
	// +optional
	Metrics *MetricsSpec `json:"metrics,omitempty"`

	// pull is about the pods that pull an image to the nodes that need it, before a
	// server is restarted with it (see upgrade). A change touches no server.
	// +optional
	Pull *PullSpec `json:"pull,omitempty"`

	// disruption is about the PodDisruptionBudget `<name>`, which lets a drain evict
	// one server at a time, and none while one is restarted in place. A change
	// touches no server.
	// +optional
	Disruption *DisruptionSpec `json:"disruption,omitempty"`

	// podTemplate sets everything else about the pods. The container named
	// memcached is the server, and the one named exporter that of metrics. A
	// security context set here replaces the operator's, and so do memory limit and
	// request of the container memcached. If that limit is lower than the operator's
	// (see memory), the condition Ready says what is needed, and the servers stay as
	// they are. A change is cold (see upgrade).
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Always'",fieldPath=".spec.restartPolicy",message="must be Always or left out: a server is to run on"
	PodTemplate *corev1.PodTemplateSpec `json:"podTemplate,omitempty"`
}

// AuthSpec says who can use the cache.
type AuthSpec struct {
	// secretName is the name of a Secret with memcached's file of users: one
	// user:password per line, at most 8 lines of at most 254 bytes each, without
	// spaces. The servers read a change within seconds, without a restart, and
	// open connections stay open. If memcached would not read the file, the
	// servers keep the previous users and the condition Ready says what is wrong.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower case letters, digits, '-' and '.'"
	SecretName string `json:"secretName"`

	// key is the key of the file of users in the Secret. Defaults to users.
	// +optional
	// +kubebuilder:default=users
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="must be the name of a key of a Secret: letters, digits, '-', '_' and '.'"
	Key string `json:"key,omitempty"`
}

// TLSSpec says which certificate the servers have.
type TLSSpec struct {
	// secretName is the name of a Secret with the keys tls.crt and tls.key, such
	// as cert-manager writes. The servers read a change within seconds, without a
	// restart. A certificate and a key that do not match never reach the servers.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower case letters, digits, '-' and '.'"
	SecretName string `json:"secretName"`
}

// MetricsSpec describes the metrics exporter that runs beside each server.
type MetricsSpec struct {
	// image is the container image of the exporter. It runs with
	// --memcached.address and --web.listen-address. Defaults to
	// prom/memcached-exporter:v0.15.0.
	// +optional
	// +kubebuilder:default="prom/memcached-exporter:v0.15.0"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:space:]]+$')",message="must be the name of an image, without spaces, such as prom/memcached-exporter:v0.15.0"
	Image string `json:"image,omitempty"`

	// port is the port of the metrics, from 1024 to 65535. Its name is metrics.
	// Defaults to 9150.
	// +optional
	// +kubebuilder:default=9150
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// PullSpec is about the pods that pull an image.
type PullSpec struct {
	// resources are those of the pods' container, for clusters whose quotas or limits
	// want others. By default it requests no CPU and no memory, so that a full node
	// runs it, and is limited to 100m and 64Mi.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
}

// DisruptionSpec is about the PodDisruptionBudget.
type DisruptionSpec struct {
	// enabled says whether there is a PodDisruptionBudget of the operator's. false
	// is for a budget of your own: Kubernetes refuses every eviction of a pod that
	// has two. Without the operator's, a change in place (see upgrade) does not wait
	// until no other server can be evicted, so a drain can take a second server away
	// while one restarts; and without any, a drain can take all servers at once, with
	// their caches. Defaults to true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}
