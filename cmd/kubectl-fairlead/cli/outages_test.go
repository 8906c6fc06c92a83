package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestOutages: an API server that is away is waited for, but not at first, and not for ever; a refusal is final.
func TestOutages(t *testing.T) {
	ats := schema.GroupResource{Resource: "ats"}
	refused, away := apierrors.NewForbidden(ats, "x", errors.New("you may not")), errors.New("connection refused")
	answers := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, tc := range map[string]struct {
		reads []func(context.Context) error // a minute lies between two
		want  string                        // the error of the last one
	}{
		"it is there":                      {[]func(context.Context) error{answers(nil)}, ""},
		"it is away at first":              {[]func(context.Context) error{answers(away)}, "connection refused"},
		"it is silent at first":            {[]func(context.Context) error{silent}, "does not answer within 10s"},
		"it goes away":                     {[]func(context.Context) error{answers(nil), answers(away), answers(away)}, ""},
		"it goes away for long":            {[]func(context.Context) error{answers(nil), answers(away), silent, answers(away)}, "was away for more than 2m0s: connection refused"},
		"it goes away twice":               {[]func(context.Context) error{answers(nil), answers(away), answers(away), answers(nil), answers(away), answers(away)}, ""},
		"it has no room":                   {[]func(context.Context) error{answers(nil), answers(apierrors.NewTooManyRequestsError("later"))}, ""},
		"it is upgraded":                   {[]func(context.Context) error{answers(nil), answers(apierrors.NewInternalError(away))}, ""},
		"it refuses":                       {[]func(context.Context) error{answers(nil), answers(refused)}, "you may not"},
		"it refuses, after it had gone":    {[]func(context.Context) error{answers(nil), answers(away), answers(refused)}, "you may not"},
		"the object goes while it is away": {[]func(context.Context) error{answers(nil), answers(away), answers(apierrors.NewNotFound(ats, "x"))}, "not found"},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := Outages{Now: time.Now}
			for i, read := range tc.reads {
				isThere, err := o.Survive(t.Context(), read)
				isLast := i+1 == len(tc.reads)
				if wantsErr := isLast && tc.want != ""; (err != nil) != wantsErr || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: read %d: %v, want %q", name, i, err, tc.want)
				}
				over, stop := context.WithCancel(t.Context())
				stop()
				if is := read(over) == nil; isThere != is {
					t.Errorf("%s: read %d: there is an answer: %t, want %t", name, i, isThere, is)
				}
				time.Sleep(time.Minute)
			}
		})
	}
}
