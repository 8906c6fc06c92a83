package store

// Problem is why something was not done, for the user: what is wrong, with which object, and what
// to do. All errors of this package are of this type. Nothing of credentials is in it.
type Problem struct { //nolint:errname // it is stored and reported more often than it is returned
	Reason  string
	Message string
	// Passes says that it is worth trying again with nothing changed.
	Passes bool `json:",omitempty"`
}

func (p *Problem) Error() string { return p.Message }

// The reasons.
const (
	// ReasonPlaceInvalid says that the storage type, or the path, cannot be.
	ReasonPlaceInvalid = "PlaceInvalid"
	// ReasonUnreachable says that no server answers at the storage's address.
	ReasonUnreachable = "StorageUnreachable"
	// ReasonHangs says that the storage made no byte of progress for the time allowed.
	ReasonHangs = "StorageHangs"
	// ReasonFailed says that the storage answered with an error that has no reason of its own.
	ReasonFailed = "StorageFailed"
	// ReasonFull says that nothing more can be stored.
	ReasonFull = "StorageFull"
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
	// ReasonInterrupted says that the caller's context was cancelled.
	ReasonInterrupted = "Interrupted"
)
