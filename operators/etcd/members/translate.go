package members

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// meanings are etcd's errors by their text: the codes that go with them differ from version to
// version, and some have none. What is not here says nothing of what became of a request, such as
// "leader changed" or "request timed out".
var meanings = func() map[string]error {
	texts := map[string]error{
		// What etcd sends where it forgot the error for clients.
		"etcdserver: no space": ErrNoSpace,
		"auth: authentication failed, password was given for no password user": ErrPassword,
	}
	for meaning, theirs := range map[error][]error{
		ErrMemberNotFound:  {rpctypes.ErrGRPCMemberNotFound},
		ErrMemberExists:    {rpctypes.ErrGRPCMemberExist, rpctypes.ErrGRPCPeerURLExist},
		ErrLearnerNotReady: {rpctypes.ErrGRPCLearnerNotReady},
		ErrNotLearner:      {rpctypes.ErrGRPCMemberNotLearner},
		ErrTooManyLearners: {rpctypes.ErrGRPCTooManyLearners},
		ErrUnhealthy:       {rpctypes.ErrGRPCUnhealthy, rpctypes.ErrGRPCMemberNotEnoughStarted},
		ErrNoLeader:        {rpctypes.ErrGRPCNoLeader},
		ErrNotLeader:       {rpctypes.ErrGRPCNotLeader},
		ErrNoSpace:         {rpctypes.ErrGRPCNoSpace},
		ErrCompacted:       {rpctypes.ErrGRPCCompacted},
		ErrDowngradeRefused: {
			rpctypes.ErrGRPCWrongDowngradeVersionFormat, rpctypes.ErrGRPCInvalidDowngradeTargetVersion,
			rpctypes.ErrGRPCClusterVersionUnavailable, rpctypes.ErrGRPCDowngradeInProcess,
		},
		ErrNoDowngrade: {rpctypes.ErrGRPCNoInflightDowngrade},
		ErrUnsupported: {rpctypes.ErrGRPCNotCapable},
		ErrIsLearner:   {rpctypes.ErrGRPCNotSupportedForLearner},
		ErrAuth: {
			rpctypes.ErrGRPCUserEmpty, rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCInvalidAuthToken,
			rpctypes.ErrGRPCUserNotFound, rpctypes.ErrGRPCAuthOldRevision,
		},
		ErrPassword:   {rpctypes.ErrGRPCAuthFailed},
		ErrAuthOff:    {rpctypes.ErrGRPCAuthNotEnabled},
		ErrUserExists: {rpctypes.ErrGRPCUserAlreadyExist},
	} {
		for _, err := range theirs {
			texts[status.Convert(err).Message()] = meaning
		}
	}
	return texts
}()

// transportError is one of the connection, which is not used again.
type transportError struct{ error }

func (e transportError) Unwrap() error { return e.error }

func isTransport(err error) bool { return errors.As(err, new(transportError)) }

// addresses are what differs in errors that are the same.
var addresses = regexp.MustCompile(`\b(read|write|dial) (tcp|unix) \S+: `)

// translate is what the answer to a request means.
func translate(ctx context.Context, patience time.Duration, err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	text := s.Message()
	if meaning, ok := meanings[text]; ok {
		if errors.Is(meaning, ErrDowngradeRefused) || errors.Is(meaning, ErrUnhealthy) { // these have several reasons
			return fmt.Errorf("%w: %s", meaning, strings.TrimPrefix(text, "etcdserver: "))
		}
		return meaning
	}
	isEtcds := strings.HasPrefix(text, "etcdserver: ")
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		return fmt.Errorf("the request was cut off: %w", context.Canceled)
	case s.Code() == codes.DeadlineExceeded && !isEtcds:
		return transportError{fmt.Errorf("no answer within %s: %w", patience, context.DeadlineExceeded)}
	case s.Code() == codes.Unimplemented:
		return ErrUnsupported
	case s.Code() == codes.PermissionDenied || s.Code() == codes.Unauthenticated:
		return ErrAuth
	case s.Code() == codes.Unavailable && !isEtcds:
		return transportError{fmt.Errorf("the connection broke: %s", addresses.ReplaceAllString(text, ""))}
	}
	return errors.New(text)
}
