package task

import (
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
)

// Program is the agent in the operator's image. Its only argument is a [Task] as JSON.
const Program = "/fairlead-etcd-agent"

// CertificateDir is where the Secret with a client's certificate is mounted, whole: with the keys
// etcd-client.crt, etcd-client.key and etcd-client-ca.crt, or those of cert-manager.
const CertificateDir = "/etc/etcdtls/operator"

// UserDir is where the Secret with etcd's user is mounted, whole, see members.UserOf.
const UserDir = "/etc/etcd-user"

// MessagePath is where a result is written, as JSON.
const MessagePath = "/dev/termination-log"

// MemberVariable is the variable of the container of [Fetch] that has the name of the member that the
// pod is; it is empty as long as the pod is none yet.
const MemberVariable = "ETCD_AGENT_MEMBER"

// Action is what is to be done.
type Action string

// The actions.
const (
	// Save makes a backup. Result.Saved is there if it did.
	Save Action = "Save"
	// Fetch makes a data directory of a backup. Result.Fetched is there if it did. In the pod of a
	// member that serves clients already it never does, see [MemberVariable].
	Fetch Action = "Fetch"
	// Prove compares what the etcd of the pod serves with what Save recorded. Result.Proved is there
	// if it is the same.
	Prove Action = "Prove"
	// Prune removes backups that are not kept. Result.Pruned, Left and Retained are there.
	Prune Action = "Prune"
)

// Task is what the operator wants done.
type Task struct {
	Action Action
	// Place is where backups are stored.
	Place Place
	// Owner is the UID of the EtcdBackup.
	Owner string `json:",omitempty"`
	// Number tells tries apart, and is greater for later ones. It is stored with the object.
	Number int64 `json:",omitempty"`
	// Timeout is how long it may go on without a byte of progress. It must not be 0.
	Timeout time.Duration

	// Endpoints are URLs of members. For Save.
	Endpoints []string `json:",omitempty"`
	// TLS says that a client's certificate is mounted at [CertificateDir]. Without it, endpoints
	// with https are verified by the system's CAs. For Save.
	TLS bool `json:",omitempty"`
	// User says that etcd's user is mounted at [UserDir]. For Save.
	User bool `json:",omitempty"`
	// Periodic says that the place's key is what names begin with, see KeyOf in package store, and not the
	// name itself. For Save.
	Periodic bool `json:",omitempty"`
	// Hash has etcd's hash of all keys recorded, which a proof needs. Etcd reads the whole database
	// for it. For Save.
	Hash bool `json:",omitempty"`

	// Key is that of the object. For Fetch; empty for the place's key, or if Choose is set.
	Key string `json:",omitempty"`
	// Choose has the object chosen from those whose names begin with the place's key. For Fetch.
	Choose *Wanted `json:",omitempty"`
	// Member is the member that the data directory is for. For Fetch and Prove.
	Member *Member `json:",omitempty"`
	// Saved is what Save has reported. For Prove.
	Saved *v1beta2.StoredBackup `json:",omitempty"`

	// Keep is what is kept. For Prune.
	Keep *Retention `json:",omitempty"`
}

// Member is the only member of a new cluster.
type Member struct {
	Name, PeerURL string
	// Token makes the cluster's ID, together with the name and URL: no other cluster may have it.
	Token string
	// DataDir is etcd's data directory. Its parent is the volume, or in it.
	DataDir string
	// After is the last revision that is known of the cluster that is replaced; 0 if there is none.
	After int64 `json:",omitempty"`
	// Version is that of its etcd; empty if it is the one that the backup is from.
	Version string `json:",omitempty"`
	// ThrowAway says that the member is there only for a proof: authentication is off.
	ThrowAway bool `json:",omitempty"`
}

// RevisionsAhead is by how much the revisions of a restored cluster begin above the last one that is known of the cluster
// before, and of the backup. It has to be more than were given out after the operator's last observation: at 10,000 writes
// a second that are 28 hours.
const RevisionsAhead = 1_000_000_000

// Begins is the revision that a member begins with, which a backup of that revision is restored for. A client that has watched
// the cluster before waits for the next revision that it does not know: below it nothing would ever reach it.
func (m *Member) Begins(revision int64) int64 {
	if m.ThrowAway {
		return revision // as in the backup, with which it is compared
	}
	return max(revision, m.After) + RevisionsAhead
}

// Retention is what is kept of an EtcdBackup's backups: those that are among the last Max, and not
// older than MaxAge. Last and Proved are kept in any case, and the last two whatever their age.
type Retention struct {
	// Max is how many; 0 for any number.
	Max int32 `json:",omitempty"`
	// MaxAge is for how long; 0 for ever.
	MaxAge time.Duration `json:",omitempty"`
	// Last and Proved are the keys of the last backup that was made, and that was proved.
	Last   string `json:",omitempty"`
	Proved string `json:",omitempty"`
}

// Result is what became of a task.
type Result struct {
	// Problem is why it was not done; the process then ends with code 1.
	Problem *Problem `json:",omitempty"`

	Saved   *v1beta2.StoredBackup `json:",omitempty"`
	Fetched *Fetched              `json:",omitempty"`
	Proved  *v1beta2.BackupProof  `json:",omitempty"`
	// Pruned is how many backups were removed, and Left how many of this EtcdBackup are there. Retained is how many of
	// those that are left are not kept, but the storage has a retention for them.
	Pruned   int `json:",omitempty"`
	Left     int `json:",omitempty"`
	Retained int `json:",omitempty"`
}

// Fetched is a data directory that was made of a backup.
type Fetched struct {
	// Key is that of the object.
	Key string
	// Revision is that of the store in the backup, exactly.
	Revision int64
	// Offset is by how much the revision that the member begins with is greater.
	Offset int64 `json:",omitempty"`
	// ClusterID is etcd's ID of the new cluster, in hexadecimal, as members.ID writes it.
	ClusterID string
	// MemberID is etcd's ID of its member, in hexadecimal.
	MemberID string
	// SHA256 is that of the snapshot, in hexadecimal, as etcd made it.
	SHA256 string
	// Size is the object's, in bytes.
	Size int64
}
