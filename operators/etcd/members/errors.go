package members

import "errors"

// What members answer, whatever the words of their version. Any other error, a timeout among
// them, says nothing about whether the request was carried out.
var (
	// ErrUnreachable says that there was no connection: the request was not carried out.
	ErrUnreachable = errors.New("cannot be reached")
	// ErrNotTrusted says, besides ErrUnreachable, that one of the two does not trust the other's certificate.
	ErrNotTrusted = errors.New("one of the two does not trust the other's certificate")
	// ErrMemberNotFound says that the cluster has no such member.
	ErrMemberNotFound = errors.New("the cluster has no such member")
	// ErrMemberExists says that there is a member with one of the peer URLs.
	ErrMemberExists = errors.New("there is a member with that peer URL")
	// ErrLearnerNotReady says that a learner is too far behind to be promoted.
	ErrLearnerNotReady = errors.New("the learner has not caught up yet")
	// ErrNotLearner says that a member that was to be promoted is a voter.
	ErrNotLearner = errors.New("the member is a voter already")
	// ErrTooManyLearners says that the cluster has as many learners as it may have.
	ErrTooManyLearners = errors.New("the cluster has another learner")
	// ErrUnhealthy says that etcd refuses to change the members, because the cluster would not
	// survive it or became healthy only some seconds ago.
	ErrUnhealthy = errors.New("etcd refuses to change the members until all of them have been connected for some seconds")
	// ErrNoLeader says that nobody leads.
	ErrNoLeader = errors.New("the cluster has no leader")
	// ErrNotLeader says that a leader was to hand over, and another member leads.
	ErrNotLeader = errors.New("another member leads")
	// ErrNoSpace says that the database is full.
	ErrNoSpace = errors.New("the database is full")
	// ErrCompacted says that the history before a revision is dropped already.
	ErrCompacted = errors.New("the revision is compacted already")
	// ErrDowngradeRefused says that etcd refuses a downgrade.
	ErrDowngradeRefused = errors.New("etcd refuses the downgrade")
	// ErrNoDowngrade says that there is no downgrade to cancel.
	ErrNoDowngrade = errors.New("no downgrade is under way")
	// ErrUnsupported says that the member's version has no such request.
	ErrUnsupported = errors.New("this version of etcd cannot do that")
	// ErrIsLearner says that a learner was asked for what only voters answer.
	ErrIsLearner = errors.New("the member is a learner, and answers only for its status")
	// ErrAuth says that authentication is on, and that the client is no user with the role root.
	ErrAuth = errors.New("etcd refuses the client: authentication is on, and it is no user with the role root")
	// ErrPassword says, besides ErrAuth, that the client's user has another password, or is none.
	ErrPassword error = also{errors.New("etcd refuses the client: authentication is on, and its user has another password"), ErrAuth}
	// ErrAuthOff says that authentication is off.
	ErrAuthOff = errors.New("authentication is off")
	// ErrUserExists says that a user that was to be added is there.
	ErrUserExists = errors.New("there is a user of that name")
)

// also is an error that means another one as well, which its text leaves out.
type also struct {
	error
	meaning error
}

func (e also) Is(target error) bool { return target == e.meaning }

func (e also) Unwrap() error { return e.error }
