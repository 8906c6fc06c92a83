package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

	// member is the member that the cluster was started again from; empty if it was started empty.
	// +optional
	Member string `json:"member,omitempty"`

	// backup is the key of the backup, if it was started from one.
	// +optional
	Backup string `json:"backup,omitempty"`

	// lostRevision is the last revision that is known of the cluster before, if it was started from a backup.
	// +optional
	LostRevision int64 `json:"lostRevision,omitempty"`

	// revision is that member's revision of the store. Whatever was written after it is lost.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// revisionOffset is by how much the revisions of the restored cluster are above that: it begins with revision +
	// revisionOffset, which no client has seen before, and all below is compacted. Watchers get that error, and list again.
	// +optional
	RevisionOffset int64 `json:"revisionOffset,omitempty"`

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
	// revisionOffset is by how much the revisions of the restored cluster are above that: it begins with revision +
	// revisionOffset, which no client has seen before, and all below is compacted. Watchers get that error, and list again.
	// +optional
	RevisionOffset int64 `json:"revisionOffset,omitempty"`
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
	// revisionOffset is by how much the revisions of the restored cluster are above that: it begins with revision +
	// revisionOffset, which no client has seen before, and all below is compacted. Watchers get that error, and list again.
	// +optional
	RevisionOffset int64 `json:"revisionOffset,omitempty"`
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
}

// IDOf is the ID of the loss that was recovered from; empty if there was none.
func (r *Recovered) IDOf() string {
	if r == nil {
		return ""
	}
	return r.ID
}
