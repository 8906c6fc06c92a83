package apply

import (
	"errors"

	"example.com/fairlead/internal/kit/status"
)

// The reasons that conditions have for writes that failed.
const (
	// ReasonConflict says that an object of that name is not the owner's.
	ReasonConflict = "NameConflict"
	// ReasonRefused says that the API server refuses an object until a user changes something.
	ReasonRefused = "Refused"
	// ReasonRetrying says that a request failed, which is made again.
	ReasonRetrying = "Retrying"
)

// Problem is what the status of an object says about a write that failed, of which kind is the object's; nil if none has.
func Problem(failure error, kind string) *status.Problem {
	var conflict *ConflictError
	switch {
	case failure == nil:
		return nil
	case errors.As(failure, &conflict):
		return &status.Problem{Reason: ReasonConflict, Message: conflict.Error(), Retriable: conflict.Predecessor}
	case AnyOf(failure, IsRefusal):
		return &status.Problem{Reason: ReasonRefused, Message: "The API server refuses what this " + kind + " needs: " + status.Shortened(failure.Error())}
	}
	return &status.Problem{Reason: ReasonRetrying, Message: "A request to the API server failed and is retried: " + status.Shortened(failure.Error()), Retriable: true}
}
