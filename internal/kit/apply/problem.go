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

// Problem is what the status of an object says about a write that failed, of which kind is the object's:
// a reason and a message, and whether it passes with nothing changed by a user. failure is not nil.
func Problem(failure error, kind string) (reason, message string, passes bool) {
	var conflict *ConflictError
	switch {
	case errors.As(failure, &conflict):
		return ReasonConflict, conflict.Error(), conflict.Predecessor
	case AnyOf(failure, IsRefusal):
		return ReasonRefused, "The API server refuses what this " + kind + " needs: " + status.Shortened(failure.Error()), false
	}
	return ReasonRetrying, "A request to the API server failed and is retried: " + status.Shortened(failure.Error()), true
}
