package apply

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsRefusal says whether the API server will continue to refuse until a user changes
// something: quota, admission (also a webhook that does not answer), Pod Security, an
// invalid object. All else is a problem that passes.
func IsRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "webhook")
}

// AnyOf says whether is holds for err, or for one of the errors that are joined in it:
// errors.As, which apierrors uses, stops at the first of its type.
func AnyOf(err error, is func(error) bool) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(many.Unwrap(), func(e error) bool { return AnyOf(e, is) })
	}
	return err != nil && is(err)
}
