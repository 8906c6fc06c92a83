// Package members is how the operator talks to the members of an etcd cluster.
//
// Every request goes to one member, at its address, and never to another one: an answer is
// worth nothing if it is not known whose it is. No request waits for long: each has a timeout
// of its own, shorter than that of the context, and is not repeated.
package members

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Endpoint is where a member serves clients.
type Endpoint struct {
	// Address is its host and port, such as 10.0.0.7:2379. The host is the pod's IP address, so
	// that a problem with DNS is none of the operator's.
	Address string
	// ServerName is the name that its certificate has to have.
	ServerName string
}

// ID is the ID of a member or cluster. 0 is none.
type ID uint64

// String is the ID in hexadecimal, as etcd writes it; empty for none.
func (id ID) String() string {
	if id == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(id), 16)
}

// ParseID reads what String wrote; 0 for anything else.
func ParseID(s string) ID {
	id, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0
	}
	return ID(id)
}

// Member is an entry of a member list.
type Member struct {
	ID ID
	// Name is empty until the member has started once.
	Name       string
	PeerURLs   []string
	ClientURLs []string
	IsLearner  bool
}

// List is a member list as one member has it.
type List struct {
	ClusterID ID
	// By is the member that answered.
	By      ID
	Members []Member
}

// Alarm is an alarm that a member has raised: NOSPACE or CORRUPT. Its member is 0 where etcd does not know which.
type Alarm struct {
	Member ID
	Type   string
}

// The types of alarms.
const (
	NoSpace = "NOSPACE"
	Corrupt = "CORRUPT"
)

// Status is what a member says of itself.
type Status struct {
	ClusterID ID
	ID        ID
	// Version is that of its binary, such as 3.6.16.
	Version string
	// Leader is who leads as it knows; 0 if nobody does.
	Leader    ID
	IsLearner bool
	// RaftTerm and RaftIndex are those of its log, and Applied what of it is applied.
	RaftTerm, RaftIndex, Applied uint64
	// Revision is that of the store.
	Revision int64
	// DBSize and DBSizeInUse are in bytes. The difference is what defragmentation frees.
	DBSize, DBSizeInUse int64
	// Quota is how many bytes the database may have, negative if any; 0 before etcd 3.6, which does not say.
	Quota int64
	// StorageVersion is that of the data, such as 3.6; empty before etcd 3.6.
	StorageVersion string
	// Downgrading is the version that a downgrade is enabled to; empty if none.
	Downgrading string
	// Alarms are those of all members that it knows of.
	Alarms []Alarm
	// Errors is what else it says is wrong with it, in its words; empty if nothing is.
	Errors []string
}

// HasAlarm says that a member knows of an alarm of a type, whoever it is of.
func (s Status) HasAlarm(kind string) bool {
	return slices.ContainsFunc(s.Alarms, func(raised Alarm) bool { return raised.Type == kind })
}

// Hash is that of the keys of a member at a revision. Members that were compacted up to the same revision, and run the
// same version of etcd, have the same if they have the same data.
type Hash struct {
	Revision, Compacted int64
	Sum                 uint32
}

// Client makes requests to the members of one cluster. An error is one of those in errors.go,
// or it is not known what became of the request.
type Client interface {
	// Status and Alarms are answered by the member from what it has, also without quorum.
	Status(ctx context.Context, at Endpoint) (Status, error)
	// List is the member list as the member at the endpoint has it, also without quorum. It may
	// be an old one.
	List(ctx context.Context, at Endpoint) (List, error)
	// Hash is that of the keys that the member at the endpoint has at a revision, also without quorum. It reads the
	// whole database.
	Hash(ctx context.Context, at Endpoint, revision int64, patience time.Duration) (Hash, error)
	// Serves asks for a linearizable read: it succeeds only if the member is part of a quorum.
	Serves(ctx context.Context, at Endpoint) error

	// LogIn says whether authentication is on, and the client's user is one: ErrAuthOff if it is off, ErrPassword if
	// the user's password is another. Other requests log in by themselves.
	LogIn(ctx context.Context, at Endpoint) error

	// Send makes a request that changes something. It does not look at the request's Listed and NoDowngrade.
	Send(ctx context.Context, r Request) error

	// Close frees the connections.
	Close() error
}

// Connect makes the client of a cluster, with TLS where the cluster has it, and as a user where it has authentication.
// Tests give another than [Dial].
type Connect func(config *tls.Config, as User) (Client, error)

// The timeouts of requests.
const (
	// Patience is for what a healthy member answers at once.
	Patience = 2 * time.Second
	// ChangePatience is for what a quorum has to agree to.
	ChangePatience = 5 * time.Second
)

// A member takes what it is asked for when it has a connection, and at most patienceAtLeast later it has begun.
// BenchmarkGreatDatabase has compactions of 50,000 to 70,000 revisions in a second, and defragmentations of 7 to 30
// seconds for each GiB. A disk that is half as fast as the slowest of these is waited for.
const (
	patienceAtLeast      = time.Minute
	compactedInASecond   = 25_000
	leastBytesOfRevision = 256 // in the file: fewer are not worth a thought
	defragmentsGiBWithin = time.Minute
)

// CompactPatience is for how long a compaction up to a revision is waited for, in a database file of a size.
func CompactPatience(revision, size int64) time.Duration {
	return patienceAtLeast + time.Duration(min(revision, size/leastBytesOfRevision)/compactedInASecond)*time.Second
}

// DefragmentPatience is for how long the defragmentation of a database file of a size is waited for.
func DefragmentPatience(size int64) time.Duration {
	return patienceAtLeast + (time.Duration(size>>20) * defragmentsGiBWithin / 1024).Truncate(time.Second)
}

// HashPatience is for how long the hash of a database file of a size is waited for: a defragmentation reads it, too, and
// writes it beside.
func HashPatience(size int64) time.Duration { return DefragmentPatience(size) }

// PeerURL is where other members find a member, by the scheme, and the host's name.
func PeerURL(scheme, host string) string { return fmt.Sprintf("%s://%s:%d", scheme, host, PeerPort) }

// The ports of a member.
const (
	ClientPort = 2379
	PeerPort   = 2380
)
