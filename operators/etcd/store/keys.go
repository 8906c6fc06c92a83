package store

import (
	"time"
)

// Object is one that is stored.
type Object struct {
	Key  string
	Size int64
	// Time is when it was stored, by the storage's clock.
	Time time.Time
	// Meta is what was stored with it; empty in what List gives, and for one that was not written by
	// [Store.Write].
	Meta Meta
}

// Meta is stored with an object: as its metadata, and in a volume in a file beside it.
type Meta struct {
	// Owner is the UID of the EtcdBackup. Only who has the same replaces and deletes the object.
	Owner string
	// Number is that of the try.
	Number int64
	// Revision and Time are those of the backup, and those that are in its key if it is periodic.
	Revision int64
	Time     time.Time
	// EtcdVersion is that of the member.
	EtcdVersion string
	// Hash is etcd's hash of all keys in hexadecimal, HashRevision the revision at which it was
	// taken, and CompactRevision up to which keys were compacted then.
	Hash            string
	HashRevision    int64
	CompactRevision int64
}

// KeyOf is the key of a periodic backup: <path>_v<revision>_2006-01-02-15:04:05, in UTC.
func KeyOf(path string, revision int64, t time.Time) string { panic("soon") }

// ParseKey is the revision and the time of a key that [KeyOf] made of the path; ok is false for
// any other.
func ParseKey(path, key string) (revision int64, t time.Time, ok bool) { panic("soon") }

// Wanted says which of the backups of a path: the newest at or before a revision, at or before a
// time, or of all.
type Wanted struct {
	Revision *int64     `json:",omitempty"`
	Time     *time.Time `json:",omitempty"`
}

// Choose is the object that is wanted, of those whose keys [KeyOf] made of the path: others are passed over, whatever
// they are called. Revisions are compared as numbers, and times as times. At or before a revision it is
// the one of the greatest revision, and of several the newest; otherwise it is the newest: after a restore,
// revisions begin again from an earlier one.
//
// The problem is of [ReasonObjectNotFound], and says what there is.
func Choose(objects []Object, path string, wanted Wanted) (Object, *Problem) { panic("soon") }
