package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
		return &status.Problem{Reason: ReasonRefused, Message: "The API server refuses what this " + kind + " needs: " + status.Shortened(failure.Error()) + WhatToDo(failure)}
	}
	return &status.Problem{Reason: ReasonRetrying, Message: "A request to the API server failed and is retried: " + status.Shortened(failure.Error()), Retriable: true}
}

// WhatToDo is for a refusal that only a user can end, and whose words do not say how: a workload that was adopted has its
// selector for life, and an update of a pod is refused if admission adds what no update may change.
func WhatToDo(failure error) (words string) {
	AnyOf(failure, func(err error) bool {
		var refused *apierrors.StatusError
		if !errors.As(err, &refused) || refused.ErrStatus.Details == nil {
			return false
		}
		details := refused.ErrStatus.Details
		for _, cause := range details.Causes {
			switch {
			case cause.Field == "spec.selector":
				words = fmt.Sprintf(". Its selector cannot be changed: delete %s %q with its pods, and the operator creates it", details.Kind, details.Name)
			case strings.Contains(cause.Message, "pod updates may not change fields"):
				words = ". The operator changes no other field: a policy or webhook of the cluster does, of pods that are updated, and must leave those as they are"
			}
		}
		return words != ""
	})
	return words
}
