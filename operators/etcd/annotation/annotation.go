// Package annotation has the annotations that the etcd kinds put on pods and volumes.
package annotation

// prefix is the domain of the API group.
const prefix = "etcd.database.coreos.com/"

// Those of an EtcdCluster's pods.
const (
	// Version has the version that a pod is to run. CoreOS' operator wrote it as well.
	Version = "etcd.version"
	// Template has the hash of what the pod was made of.
	Template = prefix + "template"
	// Image has the image that the container is to have. What it has may be another one: admission webhooks
	// rewrite images, to those of a mirror for example.
	Image = prefix + "image"
	// CA has the hash of the CAs that the pod started with.
	CA = prefix + "ca"
	// InitialCluster has the members that a member starts with.
	InitialCluster = prefix + "initial-cluster"
	// ForceNewCluster is true while a member is to start as a cluster of its own.
	ForceNewCluster = prefix + "force-new-cluster"
	// StoppedFor has, on the pods of members that were stopped for a restore, the name of the seed.
	StoppedFor = prefix + "stopped-for"
)

// Replace is set by users on the pod of a member: true has the member replaced, by one that is there before.
const Replace = prefix + "replace"

// Those of an EtcdCluster's volumes.
const (
	// ClusterUID has the UID of the EtcdCluster that a volume was made for.
	ClusterUID = prefix + "cluster-uid"
	// KeptFor has, on a volume that is kept, the name of the seed that has replaced its member.
	KeptFor = prefix + "kept-for"
	// Suspect has, on the volume of a member whose data is not trusted, why; and KeptSince, since when it is kept although
	// it has no member any more.
	Suspect   = prefix + "suspect"
	KeptSince = prefix + "kept-since"
)

// Those of an EtcdBackup's pods.
const (
	// Generation has the generation of the spec that a pod is made of.
	Generation = prefix + "generation"
	// BackupUID has the UID of the EtcdBackup that a pod was made for: others may take its labels and its owner.
	BackupUID = prefix + "backup-uid"
)
