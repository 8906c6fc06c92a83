package memcached

// The operator writes all of these, and reads them but where it says otherwise.
// Their prefix is the one of 0.0.2: pods that run find their settings by it, and a
// pod's volumes cannot be changed while it keeps its cache.

// Annotations of the pod template, and so of pods.
const (
	// revisionAnnotation is the hash of all that the pods are made of.
	revisionAnnotation = "memcached-operator/revision"
	// replaceAnnotation is the hash of what cannot be changed in place.
	replaceAnnotation = "memcached-operator/replace-for"
	// settingsAnnotation is the hash of the settings, whose change restarts a
	// server in place. The two after it are settings: the server's shell reads them,
	// from a volume, at each start of the container, which its arguments are not.
	settingsAnnotation    = "memcached-operator/settings"
	threadsAnnotation     = "memcached-operator/threads"
	connectionsAnnotation = "memcached-operator/max-connections"
	// memoryAnnotation is the memory for items, in mebibytes, of servers that
	// can be given more while they run. The shell reads it, too.
	memoryAnnotation = "memcached-operator/memory"
	// limitAnnotation is the memory of the container, in mebibytes, of servers that can
	// be allowed more connections while they run. Pods of 0.0.2 have none.
	limitAnnotation = "memcached-operator/memory-limit"
)

// imageAnnotation has the image that was requested for a container, whose name follows: admission may have made
// another one of it, that of a mirror for example. Pods of 0.0.2 have none.
const imageAnnotation = "memcached-operator/image-of-"

// Annotations of pods that are changed in place.
const (
	// changedAnnotation has when the pod was last changed.
	changedAnnotation = "memcached-operator/changed"
	// replacedAnnotation has the containers that the change ends: until they are
	// gone, the server has not been restarted.
	replacedAnnotation = "memcached-operator/replaced"
	// endedAnnotation has when the server was last made to end by itself, for other
	// settings.
	endedAnnotation = "memcached-operator/ended"
	// startsAnnotation has, by image, which starts of its server Kubernetes still
	// remembers.
	startsAnnotation = "memcached-operator/starts"
	// secretsAnnotation has the hash of the Secrets that the server was given last.
	// Any change of a pod makes its kubelet look at its volumes at once.
	secretsAnnotation = "memcached-operator/secrets"
	// refusedAnnotation has the memory that the container was refused, for want of
	// room on the node.
	refusedAnnotation = "memcached-operator/refused-memory"
)

// Annotations of a Deployment or StatefulSet.
const (
	// generationAnnotation has the generation of the Memcached that it was written
	// for.
	generationAnnotation = "memcached-operator/generation"
	// openAnnotation of a StatefulSet has the revision for which the operator has opened
	// the partition. Without it, another writer has opened it.
	openAnnotation = "memcached-operator/open-for"
)

// Labels.
const (
	// appLabel and podsOf are what the tutorial's operator selects by, so that its
	// Deployment can be taken over.
	appLabel = "app"
	podsOf   = "memcached_cr"
	// pullApp is the appLabel of pods that only pull an image.
	pullApp = "memcached-pull"
	// identityLabel says of which identity a pod is, while that changes.
	identityLabel = "memcached-operator/identity"
	// revisionLabel is the one by which a StatefulSet knows which template a pod is
	// of. Kubernetes writes it, and the operator when a pod was changed in place.
	revisionLabel = "controller-revision-hash"
)
