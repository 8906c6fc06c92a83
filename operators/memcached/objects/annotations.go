package objects

// The operator writes all of these, and reads them but where it says otherwise.
// Their prefix is the one of 0.0.2: pods that run find their settings by it, and a
// pod's volumes cannot be changed while it keeps its cache.

// Annotations of the pod template, and so of pods.
const (
	// RevisionAnnotation is the hash of all that the pods are made of.
	RevisionAnnotation = "memcached-operator/revision"
	// ReplaceAnnotation is the hash of what cannot be changed in place.
	ReplaceAnnotation = "memcached-operator/replace-for"
	// SettingsAnnotation is the hash of the settings, whose change restarts a
	// server in place. The two after it are settings: the server's shell reads them,
	// from a volume, at each start of the container, which its arguments are not.
	SettingsAnnotation    = "memcached-operator/settings"
	ThreadsAnnotation     = "memcached-operator/threads"
	ConnectionsAnnotation = "memcached-operator/max-connections"
	// MemoryAnnotation is the memory for items, in mebibytes, of servers that
	// can be given more while they run. The shell reads it, too.
	MemoryAnnotation = "memcached-operator/memory"
	// LimitAnnotation is the memory of the container, in mebibytes, of servers that can
	// be allowed more connections while they run. Pods of 0.0.2 have none.
	LimitAnnotation = "memcached-operator/memory-limit"
)

// ImageAnnotation has the image that was requested for a container, whose name follows: admission may have made
// another one of it, that of a mirror for example. Pods of 0.0.2 have none.
const ImageAnnotation = "memcached-operator/image-of-"

// Annotations of pods that are changed in place.
const (
	// ChangedAnnotation has when the pod was last changed.
	ChangedAnnotation = "memcached-operator/changed"
	// ReplacedAnnotation has the containers that the change ends: until they are
	// gone, the server has not been restarted.
	ReplacedAnnotation = "memcached-operator/replaced"
	// EndedAnnotation has when the server was last made to end by itself, for other
	// settings.
	EndedAnnotation = "memcached-operator/ended"
	// StartsAnnotation has, by image, which starts of its server Kubernetes still
	// remembers.
	StartsAnnotation = "memcached-operator/starts"
	// SecretsAnnotation has the hash of the Secrets that the server was given last.
	// Any change of a pod makes its kubelet look at its volumes at once.
	SecretsAnnotation = "memcached-operator/secrets"
	// RefusedAnnotation has the memory that the container was refused, for want of
	// room on the node.
	RefusedAnnotation = "memcached-operator/refused-memory"
)

// Annotations of a Deployment or StatefulSet.
const (
	// GenerationAnnotation has the generation of the Memcached that it was written
	// for.
	GenerationAnnotation = "memcached-operator/generation"
	// OpenAnnotation of a StatefulSet has the revision for which the operator has opened
	// the partition. Without it, another writer has opened it.
	OpenAnnotation = "memcached-operator/open-for"
)

// Labels.
const (
	// AppLabel and PodsOf are what the tutorial's operator selects by, so that its
	// Deployment can be taken over.
	AppLabel = "app"
	PodsOf   = "memcached_cr"
	// PullApp is the AppLabel of pods that only pull an image.
	PullApp = "memcached-pull"
	// IdentityLabel says of which identity a pod is, while that changes.
	IdentityLabel = "memcached-operator/identity"
	// RevisionLabel is the one by which a StatefulSet knows which template a pod is
	// of. Kubernetes writes it, and the operator when a pod was changed in place.
	RevisionLabel = "controller-revision-hash"
)
