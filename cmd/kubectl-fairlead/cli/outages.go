package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// answersWithin is how long a read may take of a verb that follows an object.
	answersWithin = 10 * time.Second
	// outage is for how long the API server may be away while an object is followed: an upgrade of it, for example.
	outage = 2 * time.Minute
)

// Outages lets a verb that follows an object survive that the API server is away for a while, once it has answered. A
// refusal is final.
type Outages struct {
	// Now is the clock.
	Now func() time.Time

	hasAnswered bool
	lost        time.Time
}

// Survive makes a read that gets an answer soon or none. Its error is final; without one, isThere says whether there was
// an answer.
func (o *Outages) Survive(ctx context.Context, read func(context.Context) error) (isThere bool, err error) {
	within, stop := context.WithTimeout(ctx, answersWithin)
	defer stop()
	err = read(within)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil:
		o.hasAnswered, o.lost = true, time.Time{}
		return true, nil
	case isRefusal(err):
		return false, err
	case within.Err() != nil:
		err = fmt.Errorf("the API server does not answer within %s: %w", answersWithin, err)
	}
	switch now := o.Now(); {
	case !o.hasAnswered:
		return false, err
	case o.lost.IsZero():
		o.lost = now
	case now.Sub(o.lost) > outage:
		return false, fmt.Errorf("the API server was away for more than %s: %w", outage, err)
	}
	return false, nil
}

// isRefusal says whether the API server has answered with what it would answer again.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch code := answer.Status().Code; code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}
