package v1beta2

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is the state of a cluster in the words of the CoreOS operator.
// +kubebuilder:validation:Enum="";Creating;Running;Failed
type Phase string

// The phases. Failed means that nothing happens until the user acts.
const (
	PhaseCreating Phase = "Creating"
	PhaseRunning  Phase = "Running"
	PhaseFailed   Phase = "Failed"
)

// The types of the conditions that are not those of kstatus (Ready, Reconciling, Stalled).
const (
	// ConditionAvailable is true while a quorum of members serves.
	ConditionAvailable = "Available"
	// ConditionRecovering is true while lost members are replaced, or the quorum is.
	ConditionRecovering = "Recovering"
	// ConditionScaling is true while the number of members is not spec.size.
	ConditionScaling = "Scaling"
	// ConditionUpgrading is true while members have another version than spec.version.
	ConditionUpgrading = "Upgrading"
)

// EtcdClusterStatus is the observed state of a cluster.
type EtcdClusterStatus struct {
	// observedGeneration is the generation of the spec that this status is about; -1 until the operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is empty, Creating, Running or Failed.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// reason says why phase is Failed.
	// +optional
	Reason string `json:"reason,omitempty"`

	// controlPaused is spec.paused.
	// +optional
	ControlPaused bool `json:"controlPaused,omitempty"`

	// conditions are Ready, Reconciling, Stalled, Available, Recovering, Scaling, Upgrading and Overruled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// size is the number of members.
	// +optional
	Size int32 `json:"size"`

	// readyMembers is the number of members that serve.
	// +optional
	ReadyMembers int32 `json:"readyMembers"`

	// selector is that of the members' pods, for `kubectl scale`.
	// +optional
	Selector string `json:"selector,omitempty"`

	// serviceName is the name of the Service for clients.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// clientPort is the port of that Service.
	// +optional
	ClientPort int32 `json:"clientPort,omitempty"`

	// members are the names of the members' pods.
	// +optional
	Members MembersStatus `json:"members"`

	// currentVersion is the version of etcd that all members have, or the lowest.
	// +optional
	CurrentVersion string `json:"currentVersion,omitempty"`

	// targetVersion is the version that members are being changed to; empty if none.
	// +optional
	TargetVersion string `json:"targetVersion,omitempty"`

	// leader is the name of the member that leads.
	// +optional
	Leader string `json:"leader,omitempty"`

	// clusterID is etcd's ID of the cluster, in hexadecimal. It is the operator's memory of
	// which cluster this is: members of any other are never joined.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// memberList has what is known of each member, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	MemberList []MemberStatus `json:"memberList,omitempty"`

	// memberNamesUsed is the number of names that members were ever given. It is counted before a member is
	// created, so that no two members have the same name.
	// +optional
	MemberNamesUsed int64 `json:"memberNamesUsed,omitempty"`

	// memberBeingAdded is the name of the member that is being added, from before it is in etcd's member list.
	// +optional
	MemberBeingAdded string `json:"memberBeingAdded,omitempty"`

	// memberBeingUpdated is the name of the member that is being changed to another version, CA or pod. No other
	// member is changed until it is complete.
	// +optional
	MemberBeingUpdated string `json:"memberBeingUpdated,omitempty"`

	// dataPreparedFor is the minor version, such as 3.7, that the members' data was prepared for before an
	// upgrade to it.
	// +optional
	DataPreparedFor string `json:"dataPreparedFor,omitempty"`

	// versionRefused is there when a member could not start with a version because of what etcd's API v2 has written,
	// and was taken back to the version of the others. It is not tried again until spec.version is another one.
	// +optional
	VersionRefused *VersionRefused `json:"versionRefused,omitempty"`

	// maintenance is the compaction or defragmentation of a member that is under way, from before the member is
	// asked for it. Until it is over, nothing else is changed of the members.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty"`

	// fullDatabase is how far the operator has got with a database that is full. It is empty again once there are
	// writes, and no member is left whose file is still to be defragmented.
	// +optional
	FullDatabase *FullDatabase `json:"fullDatabase,omitempty"`

	// founders are the members that the cluster begins with, or began with.
	// +optional
	// +listType=atomic
	Founders []string `json:"founders,omitempty"`

	// quorumLoss is there while the cluster has lost so many members that it cannot go on.
	// +optional
	QuorumLoss *QuorumLoss `json:"quorumLoss,omitempty"`

	// recovered says from where the cluster was last started again after a loss of quorum.
	// +optional
	Recovered *Recovered `json:"recovered,omitempty"`

	// restoring is the restore that is under way, from before anything is done for it.
	// +optional
	Restoring *Restoring `json:"restoring,omitempty"`

	// restored is the last restore that came to an end, whether it failed or not.
	// +optional
	Restored *Restored `json:"restored,omitempty"`

	// join is how far the take-over of spec.joinFrom has got, from before anything is changed of that etcd.
	// +optional
	Join *Join `json:"join,omitempty"`

	// keptVolumes are volumes of replaced members that are kept, as their data is only suspected to be wrong
	// (spec.keepSuspectVolumes).
	// +optional
	// +listType=map
	// +listMapKey=persistentVolumeClaim
	KeptVolumes []KeptVolume `json:"keptVolumes,omitempty"`
}

// KeptVolume is a volume that has no member any more, and is kept.
type KeptVolume struct {
	// persistentVolumeClaim is its name. It is deleted to let the volume go.
	// +required
	PersistentVolumeClaim string `json:"persistentVolumeClaim"`

	// reason says why the data in it is not trusted.
	// +required
	Reason string `json:"reason"`

	// until is when it is deleted.
	// +required
	Until metav1.Time `json:"until"`
}

// MembersStatus has the names of the members' pods.
type MembersStatus struct {
	// ready are the members that serve.
	// +optional
	// +listType=atomic
	Ready []string `json:"ready,omitempty"`

	// unready are the others.
	// +optional
	// +listType=atomic
	Unready []string `json:"unready,omitempty"`
}

// MemberStatus is what is known of a member. What a member that does not answer last said of
// itself is kept.
type MemberStatus struct {
	// name is that of the member and its pod.
	// +required
	Name string `json:"name"`

	// id is etcd's ID of the member, in hexadecimal.
	// +optional
	ID string `json:"id,omitempty"`

	// dataUID is the UID of what has its data: of its volume's claim or, without volumes, of its
	// pod. It is recorded before the member first starts.
	// +optional
	DataUID string `json:"dataUID,omitempty"`

	// version is that of its etcd.
	// +optional
	Version string `json:"version,omitempty"`

	// ready is true if it serves.
	// +optional
	Ready bool `json:"ready"`

	// learner is true for a member that does not vote yet.
	// +optional
	Learner bool `json:"learner,omitempty"`

	// dbSize is the size of its database file, rounded: it changes when that changes by an eighth.
	// +optional
	DBSize *resource.Quantity `json:"dbSize,omitempty"`

	// revision is the revision of the store that it had when its status last changed otherwise, or 100,000,000
	// revisions ago at most.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// alarms are etcd's, such as NOSPACE or CORRUPT.
	// +optional
	// +listType=atomic
	Alarms []string `json:"alarms,omitempty"`

	// problem says why it is not ready.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// VersionRefused is a version that a member could not start with.
type VersionRefused struct {
	// version is what spec.version was then.
	// +required
	Version string `json:"version"`

	// member is the name of the member.
	// +required
	Member string `json:"member"`

	// message is what etcd said of why it ended.
	// +required
	Message string `json:"message"`
}

// MaintenanceType is a request to a member that may take minutes.
// +kubebuilder:validation:Enum=Compaction;Defragmentation
type MaintenanceType string

// The types of maintenance.
const (
	// MaintenanceCompaction drops the history of all keys.
	MaintenanceCompaction MaintenanceType = "Compaction"
	// MaintenanceDefragmentation makes the file of a member's database as small as it can be. The member does not
	// serve meanwhile.
	MaintenanceDefragmentation MaintenanceType = "Defragmentation"
)

// Maintenance is a compaction or defragmentation that is under way.
type Maintenance struct {
	// type is Compaction or Defragmentation.
	// +required
	Type MaintenanceType `json:"type"`

	// member is the member that is asked for it.
	// +required
	Member string `json:"member"`

	// revision is the revision up to which a compaction drops the history.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// startTime is when it was decided.
	// +required
	StartTime metav1.Time `json:"startTime"`

	// deadline is when it counts as over at the latest: then the member is asked again, like any other.
	// +required
	Deadline metav1.Time `json:"deadline"`
}

// FullDatabase is how far the operator has got with a database that is full.
type FullDatabase struct {
	// compactedRevision is the revision up to which the history was dropped.
	// +required
	CompactedRevision int64 `json:"compactedRevision"`

	// defragmentedMembers are the members that were defragmented since then.
	// +optional
	// +listType=atomic
	DefragmentedMembers []string `json:"defragmentedMembers,omitempty"`

	// resolvedTime is when the last alarm was gone.
	// +optional
	ResolvedTime *metav1.Time `json:"resolvedTime,omitempty"`
}
