package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EtcdBackup stores snapshots of an etcd cluster, once or again and again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=etcdbackups,singular=etcdbackup,shortName=etcdbk,categories=fairlead
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.etcdCluster`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.etcdRevision`
// +kubebuilder:printcolumn:name="Last Backup",type=date,JSONPath=`.status.lastSuccessDate`
// +kubebuilder:printcolumn:name="Last Proof",type=date,JSONPath=`.status.lastProof.time`
// +kubebuilder:printcolumn:name="Next",type=string,priority=1,JSONPath=`.status.nextTime`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EtcdBackup struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec BackupSpec `json:"spec"`

	// status is the observed state. Written by the operator.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status BackupStatus `json:"status,omitempty"`
}

// EtcdBackupList is a list of EtcdBackups.
//
// +kubebuilder:object:root=true
type EtcdBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdBackup `json:"items"`
}

// BackupSpec says what is backed up, where to and when.
//
// +kubebuilder:validation:XValidation:rule="has(self.etcdCluster) != (has(self.etcdEndpoints) && self.etcdEndpoints.size() > 0)",message="set either etcdCluster, the name of an EtcdCluster in this namespace, or etcdEndpoints"
// +kubebuilder:validation:XValidation:rule="!has(self.etcdCluster) || !has(self.clientTLSSecret)",fieldPath=".clientTLSSecret",message="is for etcdEndpoints: of an EtcdCluster it is known"
// +kubebuilder:validation:XValidation:rule="!has(self.etcdCluster) || !has(self.clientUserSecret)",fieldPath=".clientUserSecret",message="is for etcdEndpoints: an EtcdCluster has spec.auth"
// +kubebuilder:validation:XValidation:rule="has(self.s3) == (self.storageType == 'S3') && has(self.gcs) == (self.storageType == 'GCS') && has(self.abs) == (self.storageType == 'ABS') && has(self.persistentVolumeClaim) == (self.storageType == 'PersistentVolumeClaim')",fieldPath=".storageType",message="set exactly the field that belongs to storageType: s3 for S3, gcs for GCS, abs for ABS, persistentVolumeClaim for PersistentVolumeClaim"
type BackupSpec struct {
	// etcdCluster is the name of an EtcdCluster in the same namespace. Its members and its client
	// certificate are known, so that nothing else has to be said of it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	EtcdCluster string `json:"etcdCluster,omitempty"`

	// etcdEndpoints are the URLs of an etcd cluster, of this operator or not, such as
	// http://example-client:2379. A snapshot is taken from one that is healthy, and not from the
	// leader if there is a choice.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^https?://[^\s/@]+/?$`
	EtcdEndpoints []string `json:"etcdEndpoints,omitempty"`

	// clientTLSSecret is the name of a Secret with a client's certificate for etcdEndpoints:
	// etcd-client.crt, etcd-client.key and etcd-client-ca.crt, or tls.crt, tls.key and ca.crt.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClientTLSSecret string `json:"clientTLSSecret,omitempty"`

	// clientUserSecret is the name of a Secret with a user of etcdEndpoints that has the role root, where authentication
	// is on: with the keys `username`, which defaults to root, and `password` or, for root, `etcd-root-password`.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClientUserSecret string `json:"clientUserSecret,omitempty"`

	// storageType is where to: S3, GCS, ABS or PersistentVolumeClaim.
	// +required
	StorageType StorageType `json:"storageType"`

	BackupSource `json:",inline"`

	// backupPolicy says when, and how many are kept. Without it there is one backup.
	// +optional
	BackupPolicy *BackupPolicy `json:"backupPolicy,omitempty"`

	// verify says how a backup is checked before it counts. The hash that etcd puts at a
	// snapshot's end is always checked. With Restore, the stored object is also read back and
	// restored, and a throw-away etcd is started from it: its revision and its hash have to be those of
	// the cluster. Defaults to Hash.
	// +optional
	// +kubebuilder:default=Hash
	Verify Verification `json:"verify,omitempty"`

	// paused means that no backup is begun and none is removed. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// pod is about the pods in which backups are made.
	// +optional
	Pod *JobPod `json:"pod,omitempty"`
}

// Verification is how a backup is checked.
// +kubebuilder:validation:Enum=Hash;Restore
type Verification string

// The ways to check a backup.
const (
	VerifyHash    Verification = "Hash"
	VerifyRestore Verification = "Restore"
)

// BackupPolicy says when backups are made, and how many are kept.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.schedule) && has(self.backupIntervalInSecond) && self.backupIntervalInSecond > 0)",message="set either backupIntervalInSecond or schedule"
// +kubebuilder:validation:XValidation:rule="!has(self.timeZone) || has(self.schedule)",fieldPath=".timeZone",message="is for schedule"
// +kubebuilder:validation:XValidation:rule="has(self.schedule) || has(self.backupIntervalInSecond) && self.backupIntervalInSecond > 0 || !(has(self.maxBackups) && self.maxBackups > 0) && !has(self.maxAge)",message="maxBackups and maxAge are for periodic backups: set backupIntervalInSecond or schedule"
type BackupPolicy struct {
	// timeoutInSecond is how long a backup, or its proof, may go on without a byte of progress. Defaults to 60.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutInSecond int64 `json:"timeoutInSecond,omitempty"`

	// backupIntervalInSecond is the time from the beginning of a backup to that of the next. One
	// that takes longer is not disturbed: the next begins when it is done. 0, the default, is for one backup.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	BackupIntervalInSecond int64 `json:"backupIntervalInSecond,omitempty"`

	// schedule is when backups are made, in the format of a CronJob's, such as "30 2 * * *". Of
	// times that were missed, one is made up for. Where it names hours, a day has each of them once: one
	// that the clocks leave out comes as much later as they are set forward, and one that they show twice
	// counts the first time.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ')",message="must not have a time zone: set timeZone"
	Schedule string `json:"schedule,omitempty"`

	// timeZone is that of schedule, such as Europe/Berlin. Defaults to UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`

	// maxBackups is how many backups are kept: those made last, of those that this EtcdBackup has
	// made. One that was proved is kept until a later one is. 0, the default, keeps all.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxBackups int32 `json:"maxBackups,omitempty"`

	// maxAge is how long a backup is kept, such as 720h. The last two are kept whatever their age.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="must be at least 1m"
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
}

// BackupStatus is the observed state of an EtcdBackup.
type BackupStatus struct {
	// observedGeneration is the generation of the spec that this status is about; -1 until the operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// succeeded is true if the last backup was made and, with verify: Restore, proved.
	// +optional
	Succeeded bool `json:"succeeded"`

	// Reason says why the last backup was not made.
	// +optional
	Reason string `json:"Reason,omitempty"`

	// etcdVersion is the version of etcd that the last backup is of.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`

	// etcdRevision is the revision of the store that the last backup is of.
	// +optional
	EtcdRevision int64 `json:"etcdRevision,omitempty"`

	// lastSuccessDate is when the last backup was complete and, with verify: Restore, proved.
	// +optional
	LastSuccessDate *metav1.Time `json:"lastSuccessDate,omitempty"`

	// conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// lastBackup is the last backup that was made.
	// +optional
	LastBackup *StoredBackup `json:"lastBackup,omitempty"`

	// lastProof is the last proof of a backup.
	// +optional
	LastProof *BackupProof `json:"lastProof,omitempty"`

	// nextTime is when the next backup is due.
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`

	// storedBackups is how many backups of this EtcdBackup the storage had when the backups that are not kept
	// were last removed.
	// +optional
	StoredBackups *int32 `json:"storedBackups,omitempty"`

	// retainedBackups is how many of those were not to be kept, but the storage does not delete them yet: it has a
	// retention or a hold for them (Object Lock of S3, policies of Google and Azure). They are removed
	// after a later backup.
	// +optional
	RetainedBackups int32 `json:"retainedBackups,omitempty"`

	// failures is how many tries have failed since the last success.
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// lastFailure is the last try that failed; not set once a later one of its step was done.
	// +optional
	LastFailure *BackupFailure `json:"lastFailure,omitempty"`

	// running is the try that is under way, from before its pod may run.
	// +optional
	Running *BackupTry `json:"running,omitempty"`

	// lastTryTime is when the last backup was begun.
	// +optional
	LastTryTime *metav1.Time `json:"lastTryTime,omitempty"`

	// tries is how many tries of all steps were begun.
	// +optional
	Tries int64 `json:"tries,omitempty"`

	// prunedAfter is the number of the backup after which the backups that are not kept were last removed.
	// +optional
	PrunedAfter int64 `json:"prunedAfter,omitempty"`
}

// StoredBackup is a backup that is complete.
type StoredBackup struct {
	// number is that of the try that has made it.
	// +optional
	Number int64 `json:"number,omitempty"`
	// problem is what its proof has found wrong with it: it is not to be relied on.
	// +optional
	Problem string `json:"problem,omitempty"`
	// key is that of the object in its bucket, or the path of the file in its volume.
	// +required
	Key string `json:"key"`
	// revision is the revision that the backup has at least. If keys were written in the moment in which it
	// was begun, it may have some later ones: its proof says which it has.
	// +required
	Revision int64 `json:"revision"`
	// size is the object's, in bytes.
	// +required
	Size int64 `json:"size"`
	// hash is etcd's hash of all keys at that revision, in hexadecimal; empty if it could not be had.
	// +optional
	Hash string `json:"hash,omitempty"`
	// compactRevision is the revision up to which keys were compacted when the hash was taken.
	// +optional
	CompactRevision int64 `json:"compactRevision,omitempty"`
	// etcdVersion is that of the member it is from.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// clusterID is etcd's ID of the cluster that it is from, in hexadecimal. It is stored with the object as well.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// member is the endpoint that it is from.
	// +optional
	Member string `json:"member,omitempty"`
	// startTime is when it was begun.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// duration is how long it took.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// BackupProof is the result of a throw-away etcd that was started from a backup.
type BackupProof struct {
	// number is that of the backup.
	// +optional
	Number int64 `json:"number,omitempty"`
	// key is that of the backup.
	// +required
	Key string `json:"key"`
	// revision is the one that the throw-away etcd has.
	// +required
	Revision int64 `json:"revision"`
	// time is when it was proved.
	// +required
	Time metav1.Time `json:"time"`
	// duration is how long it took.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// BackupStep is a step of a backup.
// +kubebuilder:validation:Enum=Save;Prove;Prune
type BackupStep string

// The steps of a backup.
const (
	BackupSave  BackupStep = "Save"
	BackupProve BackupStep = "Prove"
	BackupPrune BackupStep = "Prune"
)

// BackupTry is a step of a backup that is under way.
type BackupTry struct {
	// step is Save, Prove or Prune.
	// +required
	Step BackupStep `json:"step"`
	// number identifies the try.
	// +required
	Number int64 `json:"number"`
	// generation is the generation of the spec that its pod is made of.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// pod is the name of its pod.
	// +optional
	Pod string `json:"pod,omitempty"`
	// podUID is the UID of its pod.
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`
	// secretsHash identifies the versions of the Secrets that its pod reads.
	// +optional
	SecretsHash string `json:"secretsHash,omitempty"`
	// startTime is when the step began.
	// +required
	StartTime metav1.Time `json:"startTime"`
}

// BackupFailure is a step that failed.
type BackupFailure struct {
	// step is Save, Prove or Prune.
	// +required
	Step BackupStep `json:"step"`
	// generation is the generation of the spec that failed.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// secretsHash identifies the versions of the Secrets that its pod has read.
	// +optional
	SecretsHash string `json:"secretsHash,omitempty"`
	// time is when it failed.
	// +required
	Time metav1.Time `json:"time"`
	// reason is why, in a word.
	// +required
	Reason string `json:"reason"`
	// message is why, and what to do.
	// +optional
	Message string `json:"message,omitempty"`
	// retriable says that a retry can succeed without a change by the user.
	// +optional
	Retriable bool `json:"retriable,omitempty"`
}
