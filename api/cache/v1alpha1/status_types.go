package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MemcachedStatus is the observed state of a pool.
type MemcachedStatus struct {
	// observedGeneration is the metadata.generation that this status describes; -1 until the operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodes are the names of the pods, sorted, without those that are terminating.
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes"`

	// servers are the addresses to give to a client: host:port of each server,
	// sorted. With identity Stable the hosts are names that do not change,
	// otherwise IP addresses.
	// +optional
	// +listType=atomic
	Servers []string `json:"servers"`

	// replicas is the number of servers that exist.
	// +optional
	Replicas int32 `json:"replicas"`
	// readyReplicas is the number of servers that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// selector is the label selector of the pods, for `kubectl scale` and
	// autoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`

	// image is the image that the servers have. During an upgrade, it is the
	// previous image.
	// +optional
	Image string `json:"image,omitempty"`
	// version is the version of memcached in the tag of that image. It is absent
	// if the tag does not name one.
	// +optional
	Version string `json:"version,omitempty"`

	// memory is how much memory each server has for items. It is absent if that is
	// not known.
	// +optional
	Memory string `json:"memory,omitempty"`

	// upgrade is a change of the servers that is about to begin or in progress. A
	// cold change begins only after it is reported here.
	// +optional
	Upgrade *UpgradeStatus `json:"upgrade,omitempty"`

	// conditions are Ready, Reconciling and Stalled, as defined by kstatus;
	// Available; KnownFaults; and Overruled.
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
	// Cold loses the items, server by server.
	Cold UpgradeKind = "Cold"
	// Untouched does not restart memcached.
	Untouched UpgradeKind = "Untouched"
)

// UpgradeStatus is a change of the servers. A cold change begins only after it
// is reported here.
type UpgradeStatus struct {
	// revision is the revision that the servers change to: a hash of their pod
	// template.
	// +required
	Revision string `json:"revision"`
	// kind says what the change does to the cache. Warm keeps the items; Cold
	// loses them, server by server; Untouched does not restart memcached.
	// +required
	Kind UpgradeKind `json:"kind"`
	// message says what changes, and what that means for the cache.
	// +required
	Message string `json:"message"`
	// updated is the number of servers that have been changed.
	// +optional
	Updated int32 `json:"updated"`
	// server is the name of the server that is being changed in place.
	// +optional
	Server string `json:"server,omitempty"`
	// failedPull is the pull of the new image that failed. The operator retries
	// it.
	// +optional
	FailedPull *FailedPull `json:"failedPull,omitempty"`
}

// FailedPull is an image that was pulled to a node and does not start there.
type FailedPull struct {
	// image is the name of the image.
	// +required
	Image string `json:"image"`
	// node is the name of the node.
	// +required
	Node string `json:"node"`
	// message says how the container of the image ended.
	// +required
	Message string `json:"message"`
}

// The types of conditions besides Ready, Reconciling and Stalled.
const (
	// ConditionAvailable is True while at least one server is ready.
	ConditionAvailable = "Available"
	// ConditionKnownFaults is present, and True, while the version of the servers
	// has known faults by which a client can end them.
	ConditionKnownFaults = "KnownFaults"
)
