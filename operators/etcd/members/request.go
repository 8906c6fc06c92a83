package members

import (
	"slices"
	"time"
)

// What is what a request asks for. Metrics have these words.
type What string

// The requests that change something.
const (
	// Add adds a member that has not started, as a learner or a voter.
	Add What = "add"
	// Promote makes a voter of a learner; ErrLearnerNotReady if it is too far behind.
	Promote What = "promote"
	// Rewrite has all members write anew what they keep about a voter: its peer URLs, and that it is none of the learners.
	Rewrite What = "rewrite"
	// Remove removes a member. ErrMemberNotFound if it is gone.
	Remove What = "remove"
	// MoveLeader makes the leader, which must be the one that is asked, hand over to a voter.
	MoveLeader What = "move leader"
	// Compact drops the history before a revision, and waits until the member that is asked has dropped
	// it. ErrCompacted if it is dropped already, or is being dropped.
	Compact What = "compact"
	// DropHistory drops the history before a revision, and does not wait for that. ErrCompacted as of Compact.
	DropHistory What = "drop history"
	// Defragment makes the member's database file as small as it can be. The member does not serve meanwhile.
	Defragment What = "defragment"
	// Disarm ends an alarm.
	Disarm What = "disarm"
	// Downgrade enables a downgrade to a minor version such as 3.5, or with an empty one cancels it.
	// ErrDowngradeRefused with etcd's reason, ErrNoDowngrade if there is none to cancel.
	Downgrade What = "downgrade"
	// EnableAuth turns authentication on, with the client's user as root: it adds the user or, if there is one, gives
	// it the client's password, then the role root, and then enables authentication.
	EnableAuth What = "enable authentication"
	// SetPassword gives the client's user the client's password.
	SetPassword What = "set password"
)

// Request is a request to a member that changes something, as a value.
type Request struct {
	What What
	// At is the member that is asked.
	At Endpoint
	// ID is the member that is promoted, rewritten or removed, or that the leader hands over to.
	ID ID
	// PeerURLs are those of the member that is added or rewritten, and Learner says as what it is added.
	PeerURLs []string
	Learner  bool
	// Revision is up to which history is dropped.
	Revision int64
	Alarm    Alarm
	// Version is the minor version that a downgrade is enabled to; empty to cancel one.
	Version string
	// Patience is for how long an answer is waited for; 0 for [ChangePatience]. See [CompactPatience] and
	// [DefragmentPatience]. What takes longer goes on without anybody who waits.
	Patience time.Duration
	// Listed are the members that the request is decided for, see [IDs]: while there are others, it is not to be
	// sent. None is any.
	Listed []ID
	// NoDowngrade says that it is not to be sent while a downgrade is enabled, and that the member that is asked
	// does not say in its status whether one is.
	NoDowngrade bool
}

// IDs are the IDs of members, sorted.
func IDs(all []Member) []ID {
	ids := make([]ID, 0, len(all))
	for _, m := range all {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}
