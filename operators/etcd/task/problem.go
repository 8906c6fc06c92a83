package task

// Problem is why something was not done, for the user: what is wrong, with which object, and what
// to do. All errors of package store are of this type. Nothing of credentials is in it.
type Problem struct { //nolint:errname // it is stored and reported more often than it is returned
	Reason, Message string
	// Retriable says that a retry can succeed without a change by the user.
	Retriable bool `json:",omitempty"`
}

func (p *Problem) Error() string { return p.Message }

// The reasons of problems with the storage, by package store.
const (
	// ReasonPlaceInvalid says that the storage type, or the path, cannot be.
	ReasonPlaceInvalid = "PlaceInvalid"
	// ReasonStorageUnreachable says that no server answers at the storage's address.
	ReasonStorageUnreachable = "StorageUnreachable"
	// ReasonStorageHangs says that the storage made no byte of progress for the time allowed.
	ReasonStorageHangs = "StorageHangs"
	// ReasonStorageFailed says that the storage answered with an error that has no reason of its own.
	ReasonStorageFailed = "StorageFailed"
	// ReasonStorageFull says that nothing more can be stored.
	ReasonStorageFull = "StorageFull"
	// ReasonBucketNotFound says that there is no such bucket or container.
	ReasonBucketNotFound = "BucketNotFound"
	// ReasonClaimNotFound says that the claim is not mounted.
	ReasonClaimNotFound = "ClaimNotFound"
	// ReasonCredentialsInvalid says that the storage does not know the credentials, or that there are
	// none, or that they cannot be read.
	ReasonCredentialsInvalid = "CredentialsInvalid"
	// ReasonAccessDenied says that the storage knows the credentials, and that they may not do this.
	ReasonAccessDenied = "AccessDenied"
	// ReasonObjectNotFound says that there is no such object, or none that was wanted.
	ReasonObjectNotFound = "ObjectNotFound"
	// ReasonObjectAmbiguous says that more than one object may be the one that was wanted.
	ReasonObjectAmbiguous = "ObjectAmbiguous"
	// ReasonObjectOfAnother says that the object was not written by this owner, so that it is neither
	// replaced nor deleted.
	ReasonObjectOfAnother = "ObjectOfAnother"
	// ReasonObjectRetained says that the storage does not delete the object yet: it has a retention or a
	// hold (S3's Object Lock, Google's and Azure's policies).
	ReasonObjectRetained = "ObjectRetained"
	// ReasonObjectDamaged says that the object is shorter, or otherwise, than it was written.
	ReasonObjectDamaged = "ObjectDamaged"
	// ReasonObjectForeign says that the object is no snapshot of etcd. For those who read objects.
	ReasonObjectForeign = "ObjectForeign"
	// ReasonInterrupted says that the caller's context was cancelled: the agent was told to stop.
	ReasonInterrupted = "Interrupted"
)

// The reasons of problems that are the agent's own.
const (
	// ReasonEtcdUnreachable says that no endpoint answers.
	ReasonEtcdUnreachable = "EtcdUnreachable"
	// ReasonEtcdUnhealthy says that no member that answers has a leader and serves reads.
	ReasonEtcdUnhealthy = "EtcdUnhealthy"
	// ReasonEtcdRefuses says that etcd has users, and the client is none of them.
	ReasonEtcdRefuses = "EtcdRefuses"
	// ReasonUserInvalid says that the Secret with etcd's user cannot be used.
	ReasonUserInvalid = "ClientUserInvalid"
	// ReasonCertificateInvalid says that the client's certificate cannot be used.
	ReasonCertificateInvalid = "ClientCertificateInvalid"
	// ReasonSnapshotFailed says that a member's snapshot broke off, or has another hash than it says.
	ReasonSnapshotFailed = "SnapshotFailed"
	// ReasonNotRestorable says that etcd's tool cannot make a data directory of the object.
	ReasonNotRestorable = "NotRestorable"
	// ReasonObjectTooNew says that the object has data in the format of a later minor version of etcd than is to serve it.
	ReasonObjectTooNew = "ObjectTooNew"
	// ReasonNoSpace says that the pod's volume is full.
	ReasonNoSpace = "VolumeFull"
	// ReasonVolumeFailed says that the pod's volume cannot be read or written.
	ReasonVolumeFailed = "VolumeFailed"
	// ReasonDataDirInUse says that the data directory is there, and is not of this task.
	ReasonDataDirInUse = "DataDirInUse"
	// ReasonProofNotServed says that the throw-away etcd does not serve.
	ReasonProofNotServed = "ProofNotServed"
	// ReasonProofDiffers says that the throw-away etcd has another revision or hash: the backup is
	// not to be relied on.
	ReasonProofDiffers = "ProofDiffers"
	// ReasonProofNotComparable says that the hash cannot be compared, because there is none of the
	// cluster's, or the cluster was compacted in between. Revision and readability are proved.
	ReasonProofNotComparable = "ProofNotComparable"
	// ReasonTaskInvalid says that the task is one that this version of the agent does not know.
	ReasonTaskInvalid = "TaskInvalid"
	// ReasonAgentFailed is of whatever has no other reason.
	ReasonAgentFailed = "AgentFailed"
)
