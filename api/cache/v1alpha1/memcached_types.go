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
// +kubebuilder:resource:path=memcacheds,singular=memcached
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
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the pool is to be. Everything has a default: `spec: {}` is one
	// server.
	// +optional
	// +kubebuilder:default={}
	Spec MemcachedSpec `json:"spec,omitempty"`

	// What has become of it. Written by the operator.
	// +optional
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
	// RandomIdentity is a Deployment: every new pod has a new name.
	RandomIdentity Identity = "Random"
	// StableIdentity is a StatefulSet: servers are <name>-0, <name>-1, …
	StableIdentity Identity = "Stable"
)

// UpgradeStrategy says what becomes of the cache when servers change.
//
// +kubebuilder:validation:Enum=Cold;Warm
type UpgradeStrategy string

const (
	// ColdUpgrade replaces servers, which start with an empty cache.
	ColdUpgrade UpgradeStrategy = "Cold"
	// WarmUpgrade restarts servers in place, with their cache.
	WarmUpgrade UpgradeStrategy = "Warm"
)

// MemcachedSpec says what the pool is to be.
//
// +kubebuilder:validation:XValidation:rule="!has(self.upgrade) || self.upgrade != 'Warm' || (has(self.identity) && self.identity == 'Stable')",fieldPath=".upgrade",message="Warm needs identity Stable: only a server that keeps its pod can keep its cache"
// +kubebuilder:validation:XValidation:rule="!has(self.upgrade) || self.upgrade != 'Warm' || !has(self.extraArgs) || !self.extraArgs.exists(a, a.contains('ext_path'))",fieldPath=".extraArgs",message="a cache with extstore (ext_path) cannot be kept through a restart: leave it out, or choose upgrade Cold"
// +kubebuilder:validation:XValidation:rule="!has(self.maxItemSize) || !has(self.memory) || !quantity(string(self.maxItemSize)).isInteger() || !quantity(string(self.memory)).isInteger() || quantity(string(self.maxItemSize)).asInteger() <= quantity(string(self.memory)).asInteger() / 2",fieldPath=".maxItemSize",message="must be at most half of memory, or memcached refuses to start"
// +kubebuilder:validation:XValidation:rule="!has(self.upgrade) || self.upgrade != 'Warm' || !has(self.memory) || quantity(string(self.memory)).compareTo(quantity('39Mi')) >= 0",fieldPath=".memory",message="must be at least 39Mi with upgrade Warm: memcached then divides all of it among item sizes when it starts, and does not start with less"
// +kubebuilder:validation:XValidation:rule="!has(self.metrics) || !has(self.auth)",fieldPath=".metrics",message="the exporter cannot log in to a server with auth: leave out metrics or auth"
// +kubebuilder:validation:XValidation:rule="!has(self.metrics) || !has(self.port) || !has(self.metrics.port) || self.metrics.port != self.port",fieldPath=".metrics.port",message="must be another port than memcached's"
type MemcachedSpec struct {
	// How many servers, 1000 at most. 0 stops them all, and their caches are
	// gone. `kubectl scale` changes it. Scaling a Stable pool down takes the
	// highest ordinal; the others are not touched.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Size *int32 `json:"size,omitempty"`

	// Whether servers keep their names. Random is a Deployment: a server that
	// is replaced gets a new name and address, and clients that place keys by
	// hashing over servers then look for most keys elsewhere. Stable is a
	// StatefulSet: servers are <name>-0, <name>-1 and so on for ever, so keys
	// stay where they are. A change empties the cache: the new servers start,
	// then the old ones go.
	// +optional
	// +kubebuilder:default=Random
	Identity Identity `json:"identity,omitempty"`

	// What becomes of the cache when the version, threads or maxConnections
	// change. Cold replaces the servers one after the other, and each starts
	// empty. Warm, for identity Stable, restarts them in place, one at a time,
	// with the cache they had: each is away for about a second. What is written
	// to a server, or deleted from it, while it is away is missed by it, so a
	// key that is deleted in that second is still there afterwards: choose Warm
	// only where that does no harm. Changes of anything else, and of Warm
	// itself, are cold, and status.upgrade says so before they begin.
	// +optional
	// +kubebuilder:default=Cold
	Upgrade UpgradeStrategy `json:"upgrade,omitempty"`

	// The version of memcached, such as 1.6.38: the image is then
	// memcached:<version>. Ignored while image is set.
	// +optional
	// +kubebuilder:default="1.6.38"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+[.][0-9]+[.][0-9]+([-.][0-9A-Za-z.-]+)?$')",message="must be a version of memcached with three numbers, such as 1.6.38 or 1.6.38-alpine"
	Version string `json:"version,omitempty"`

	// The image of memcached, if it is not memcached:<version>. It has to have
	// memcached on its path and, for Stable, auth and tls, a shell at /bin/sh.
	// Its tag should be the version: a warm upgrade goes by it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:space:]]+$')",message="must be the name of an image, without spaces, such as memcached:1.6.38"
	Image string `json:"image,omitempty"`

	// How much memory each server has for items (memcached's -m), in whole
	// mebibytes, from 8Mi to 16Ti. With upgrade Warm it is 39Mi or more, and
	// holds fewer items where they are all of about one size, because memcached
	// divides all of it among item sizes when it starts: with items of 850
	// bytes, 64Mi holds 28,860 Warm and 71,040 Cold. The container's limit follows from it: a quarter
	// more, and 64Mi. With identity Stable and upgrade Cold, servers get more
	// memory while they run, where the cluster can resize pods; every other
	// change is cold.
	// +optional
	// +kubebuilder:default="64Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('8Mi')) >= 0",message="must be at least 8Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) <= 0",message="must be at most 16Ti"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Ti')) > 0 || quantity(string(self)).isInteger() && quantity(string(self)).asInteger() % 1048576 == 0",message="must be a whole number of mebibytes, such as 64Mi or 4Gi"
	Memory resource.Quantity `json:"memory,omitempty,omitzero"`

	// How many clients may be connected to each server (-c). Warm keeps the
	// cache when it changes.
	// +optional
	// +kubebuilder:default=1024
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=1000000
	MaxConnections int32 `json:"maxConnections,omitempty"`

	// The largest item (-I): a multiple of 512Ki, 1Gi and half of memory at
	// most. A change is cold.
	// +optional
	// +kubebuilder:default="1Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isInteger() && quantity(string(self)).asInteger() >= 524288 && quantity(string(self)).asInteger() <= 1073741824 && quantity(string(self)).asInteger() % 524288 == 0",message="must be a multiple of 512Ki, and 1Gi at most, such as 1Mi"
	MaxItemSize resource.Quantity `json:"maxItemSize,omitempty,omitzero"`

	// How many threads answer requests (-t). Warm keeps the cache when it
	// changes.
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Threads int32 `json:"threads,omitempty"`

	// More arguments for memcached, such as -v, or -o and modern. Those that
	// other fields set are refused in every form that memcached reads: bundled
	// (-vm9) and abbreviated (--lis) too; so are those that print something and
	// end. A change is cold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('^-[^-abfnoBDNR]*[mcItpleYZduPsUAhiV]') && !(a.startsWith('--') && ['memory-limit', 'conn-limit', 'max-item-size', 'threads', 'port', 'listen', 'memory-file', 'auth-file', 'enable-ssl', 'daemon', 'user', 'pidfile', 'unix-socket', 'udp-port', 'enable-shutdown', 'help', 'license', 'version'].exists(l, l.startsWith(a.split('=')[0].substring(2)))))",message="must not have -m -c -I -t -p -l -e -Y -Z -d -u -P -s -U -A -h -i -V, alone or bundled with others, or their long forms, or abbreviations of those: use memory, maxConnections, maxItemSize, threads, port, upgrade, auth and tls"
	ExtraArgs []string `json:"extraArgs,omitempty"`

	// The port that the servers listen on, 1024 to 65535. A change is cold.
	// +optional
	// +kubebuilder:default=11211
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// Who may use the cache. By default everybody who can reach it. Turning it
	// on or off is cold; new users and passwords are not.
	// +optional
	Auth *AuthSpec `json:"auth,omitempty"`

	// Encryption. By default none. Turning it on or off is cold; a new
	// certificate is not. The image's memcached must be built with TLS, as the
	// official one is not in every version.
	// +optional
	TLS *TLSSpec `json:"tls,omitempty"`

	// An exporter of Prometheus metrics beside each server. By default none.
	// With identity Stable a new image of the exporter restarts only the
	// exporter.
	// +optional
	Metrics *MetricsSpec `json:"metrics,omitempty"`

	// Anything else about the pods. The container named memcached is the
	// server's; a security context that is given replaces the operator's. A
	// change is cold.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Always'",fieldPath=".spec.restartPolicy",message="must be Always or left out: a server is to run on"
	PodTemplate *corev1.PodTemplateSpec `json:"podTemplate,omitempty"`
}

// AuthSpec says who may use the cache.
type AuthSpec struct {
	// The name of a Secret, of which the key names memcached's file of users:
	// one user:password in a line, 8 at most, 254 bytes each, without spaces.
	// The servers read a change within seconds, without a restart, and connections that are open
	// stay. A file that memcached would not read is not given to them: they
	// keep the users that they have, and the condition Ready says what is wrong.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower case letters, digits, '-' and '.'"
	SecretName string `json:"secretName"`

	// The key of the Secret.
	// +optional
	// +kubebuilder:default=users
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="must be the name of a key of a Secret: letters, digits, '-', '_' and '.'"
	Key string `json:"key,omitempty"`
}

// TLSSpec says which certificate the servers have.
type TLSSpec struct {
	// The name of a Secret with the keys tls.crt and tls.key, such as
	// cert-manager writes. The servers take up a change within seconds, without
	// a restart; a pair that does not fit together is not given to them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower case letters, digits, '-' and '.'"
	SecretName string `json:"secretName"`
}

// MetricsSpec is an exporter beside each server.
type MetricsSpec struct {
	// The image of the exporter. It is run with --memcached.address and
	// --web.listen-address.
	// +optional
	// +kubebuilder:default="prom/memcached-exporter:v0.15.0"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:space:]]+$')",message="must be the name of an image, without spaces, such as prom/memcached-exporter:v0.15.0"
	Image string `json:"image,omitempty"`

	// The port of the metrics, named metrics, 1024 to 65535.
	// +optional
	// +kubebuilder:default=9150
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// MemcachedStatus is what has become of the pool.
type MemcachedStatus struct {
	// The generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// The names of the pods, sorted, without those that are ending.
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes"`

	// What to give to a client, sorted: host:port of each server. With identity
	// Stable the hosts are names that stay, otherwise addresses.
	// +optional
	// +listType=atomic
	Servers []string `json:"servers"`

	// How many servers there are, and how many of them are ready.
	// +optional
	Replicas int32 `json:"replicas"`
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Selects the pods, for `kubectl scale` and autoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`

	// The image that the servers have, and its version as far as its tag tells.
	// While they are upgraded, what they had before.
	// +optional
	Image string `json:"image,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`

	// How much memory each server has for items.
	// +optional
	Memory string `json:"memory,omitempty"`

	// A change of the servers that is about to begin or under way.
	// +optional
	Upgrade *UpgradeStatus `json:"upgrade,omitempty"`

	// Ready, Reconciling and Stalled as kstatus has them; Available.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// UpgradeKind says what a change does to the cache.
type UpgradeKind string

const (
	// Warm keeps the items.
	Warm UpgradeKind = "Warm"
	// Cold loses them, server by server.
	Cold UpgradeKind = "Cold"
	// Untouched does not restart memcached.
	Untouched UpgradeKind = "Untouched"
)

// UpgradeStatus is a change of the servers. A cold one begins only after this
// has been written.
type UpgradeStatus struct {
	// What is changed to: a hash of all that the pods are made of.
	Revision string `json:"revision"`
	// Warm keeps the items; Cold loses them, server by server; Untouched does
	// not restart memcached.
	Kind UpgradeKind `json:"kind"`
	// What changes, and what that means for the cache.
	Message string `json:"message"`
	// How many servers have been changed.
	// +optional
	Updated int32 `json:"updated"`
	// The server that is being changed in place.
	// +optional
	Server string `json:"server,omitempty"`
	// The pull of the new image that has failed; it is tried again.
	// +optional
	FailedPull *FailedPull `json:"failedPull,omitempty"`
}

// FailedPull is an image that was pulled to a node, and does not start there.
type FailedPull struct {
	// The image.
	Image string `json:"image"`
	// The node.
	Node string `json:"node"`
	// What its container ended with.
	Message string `json:"message"`
}

// The types of conditions besides Ready, Reconciling and Stalled.
const (
	// ConditionAvailable is True while at least one server is ready.
	ConditionAvailable = "Available"
)
