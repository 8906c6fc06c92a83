package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A Fault is something that happens to one write of a living operator.
type Fault string

const (
	// Conflict answers 409 without doing anything, as after another write.
	Conflict Fault = "conflict"
	// LostAnswer does what was requested and then breaks the connection.
	LostAnswer Fault = "lost-answer"
	// TooManyRequests answers 429 without doing anything and without saying
	// when to try again: client-go would wait and the operator never know.
	TooManyRequests Fault = "too-many-requests"
	// ServerError answers 500 without doing anything.
	ServerError Fault = "server-error"
	// Hang gives no answer and does nothing, for a second, and then breaks.
	Hang Fault = "hang"
)

// Faults are all that the sweep's variant faults goes through.
var Faults = []Fault{LostAnswer, Conflict, TooManyRequests, ServerError, Hang}

const hangFor = time.Second

// instead is what a request meets instead of the server's answer.
func (f Fault) instead(req *http.Request, r Request, send func() (*http.Response, error)) (*http.Response, error) {
	resource := schema.GroupResource{Group: r.Group, Resource: r.Resource}
	switch f {
	case Conflict:
		return refusal(req, apierrors.NewConflict(resource, r.Name, fmt.Errorf("the sweep's conflict")))
	case TooManyRequests:
		return refusal(req, apierrors.NewTooManyRequestsError("the sweep's overload"))
	case ServerError:
		return refusal(req, apierrors.NewInternalError(fmt.Errorf("the sweep's server error")))
	case Hang:
		select {
		case <-req.Context().Done():
			return nil, req.Context().Err()
		case <-time.After(hangFor):
			return nil, syscall.ETIMEDOUT
		}
	case LostAnswer:
		if resp, err := send(); err == nil {
			_ = resp.Body.Close()
		}
		return nil, io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("unknown fault %q", f)
}

func refusal(req *http.Request, why *apierrors.StatusError) (*http.Response, error) {
	status := why.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(int(status.Code)), StatusCode: int(status.Code),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {"application/json"}},
		Body:    io.NopCloser(bytes.NewReader(body)),
		Request: req,
	}, nil
}
