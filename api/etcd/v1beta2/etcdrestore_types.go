package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EtcdRestore has an EtcdCluster begin again from a backup. The backup is read and checked, and
// a new member serves from it, before anything of the running cluster is touched. It is done
// once: a change of the spec has no effect, another EtcdRestore does it again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=etcdrestores,singular=etcdrestore,shortName=etcdrs,categories=fairlead
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.etcdCluster.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EtcdRestore struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is restored.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an EtcdRestore is done once and cannot be changed: delete it, and create another one"
	Spec RestoreSpec `json:"spec"`

	// status is the observed state. Written by the operator.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RestoreStatus `json:"status,omitempty"`
}

// EtcdRestoreList is a list of EtcdRestores.
//
// +kubebuilder:object:root=true
type EtcdRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdRestore `json:"items"`
}

// RestoreSpec says which cluster is restored from which backup.
type RestoreSpec struct {
	// etcdCluster is the EtcdCluster in the same namespace that is restored. Until there is one of the
	// name, nothing happens; one that is created together with its EtcdRestore begins with the backup. Once there was one,
	// the EtcdRestore is of that one alone, and fails when it is deleted, whatever is created under its name.
	// +required
	EtcdCluster ClusterReference `json:"etcdCluster"`

	RestoreSource `json:",inline"`

	// keepOld keeps the volumes of the members that were there before, also when the restored
	// cluster is complete. They are named in status, and are for you to delete. Defaults to false:
	// they are deleted when the restored cluster is complete.
	// +optional
	KeepOld bool `json:"keepOld,omitempty"`
}

// ClusterReference names an EtcdCluster.
type ClusterReference struct {
	// name is that of the EtcdCluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// RestoreSource says where a backup is read from.
//
// +kubebuilder:validation:XValidation:rule="has(self.s3) == (self.backupStorageType == 'S3') && has(self.gcs) == (self.backupStorageType == 'GCS') && has(self.abs) == (self.backupStorageType == 'ABS') && has(self.persistentVolumeClaim) == (self.backupStorageType == 'PersistentVolumeClaim')",fieldPath=".backupStorageType",message="set exactly the field that belongs to backupStorageType: s3 for S3, gcs for GCS, abs for ABS, persistentVolumeClaim for PersistentVolumeClaim"
// +kubebuilder:validation:XValidation:rule="!(has(self.revision) && has(self.time))",message="set either revision or time, or neither"
type RestoreSource struct {
	// backupStorageType is where from: S3, GCS, ABS or PersistentVolumeClaim.
	// +required
	BackupStorageType StorageType `json:"backupStorageType"`

	BackupSource `json:",inline"`

	// revision has the newest backup at or before this revision of the store restored, of those
	// that a periodic EtcdBackup with this path has made. Backups of the cluster that is restored come first. If more
	// than one history of etcd has the revision, the restore fails with ObjectAmbiguous.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Revision *int64 `json:"revision,omitempty"`

	// time has the newest backup at or before this time restored, of those that a periodic
	// EtcdBackup with this path has made.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// newest has the newest backup restored, of those that a periodic EtcdBackup with this path has
	// made. Defaults to false: without revision and time, path is that of the object itself.
	// +optional
	Newest bool `json:"newest,omitempty"`

	// timeoutInSecond is how long reading the backup may go on without a byte of progress. Defaults to 60.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutInSecond int64 `json:"timeoutInSecond,omitempty"`

	// serviceAccountName is the name of a ServiceAccount with an identity in the cloud, for the
	// member that reads the backup. Defaults to default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// RestorePhase is how far a restore is.
// +kubebuilder:validation:Enum=Waiting;Verifying;Switching;Completing;Complete;Failed
type RestorePhase string

// The phases of a restore. Until Switching nothing of the running cluster is touched.
const (
	RestoreWaiting    RestorePhase = "Waiting"
	RestoreVerifying  RestorePhase = "Verifying"
	RestoreSwitching  RestorePhase = "Switching"
	RestoreCompleting RestorePhase = "Completing"
	RestoreComplete   RestorePhase = "Complete"
	RestoreFailed     RestorePhase = "Failed"
)

// RestoreStatus is the observed state of an EtcdRestore.
type RestoreStatus struct {
	// observedGeneration is the generation of the spec that this status is about; -1 until the operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// succeeded is true once the restored cluster is complete.
	// +optional
	Succeeded bool `json:"succeeded"`

	// reason says why it has failed.
	// +optional
	Reason string `json:"reason,omitempty"`

	// phase is Waiting for the cluster, Verifying the backup, Switching to the member that has
	// it, Completing the cluster with more members, Complete, or Failed with the cluster as it was.
	// +optional
	Phase RestorePhase `json:"phase,omitempty"`

	// conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// etcdClusterUID is the UID of the EtcdCluster that is restored, from when there was one of the name on. Another
	// EtcdCluster, also of the same name, is never restored by this EtcdRestore.
	// +optional
	EtcdClusterUID types.UID `json:"etcdClusterUID,omitempty"`

	// key is that of the object that is restored.
	// +optional
	Key string `json:"key,omitempty"`

	// revision is the revision of the store in the backup.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// revisionOffset is by how much the revisions of the restored cluster are above that: it begins with revision +
	// revisionOffset, which no client has seen before, and all below is compacted. Watchers get that error, and list again.
	// +optional
	RevisionOffset int64 `json:"revisionOffset,omitempty"`

	// lostRevision is the last revision that is known of the cluster before: what was written
	// after revision, up to it, is not in the restored one.
	// +optional
	LostRevision int64 `json:"lostRevision,omitempty"`

	// clusterID is etcd's ID of the restored cluster, in hexadecimal.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// keptPersistentVolumeClaims are the PersistentVolumeClaims that spec.keepOld has kept.
	// +optional
	// +listType=atomic
	KeptPersistentVolumeClaims []string `json:"keptPersistentVolumeClaims,omitempty"`

	// startTime is when the operator began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when it was complete, or had failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}
