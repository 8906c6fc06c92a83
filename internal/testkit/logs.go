package testkit

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// Logs returns a copy of the config whose clients can read the logs of this kubelet's
// pods, which are their outcomes' Log. The API server would request them from the pod's
// node, and there is none. Operators of a sweep have such a config.
func (k *Kubelet) Logs(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			r := parse(req)
			if r.Verb != "get" || r.Resource != "pods" || r.Subresource != "log" || r.Namespace != k.namespace {
				return next.RoundTrip(req)
			}
			k.mu.Lock()
			text, started := k.logs[r.Name]
			k.mu.Unlock()
			if !started {
				return refusal(req, apierrors.NewBadRequest("the pod "+r.Name+" is waiting to start"))
			}
			return &http.Response{
				Status: "200 OK", StatusCode: http.StatusOK,
				Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
				Header:  http.Header{"Content-Type": {"text/plain"}},
				Body:    io.NopCloser(strings.NewReader(excerpt(text, req.URL.Query()))),
				Request: req,
			}, nil
		})
	})
	return cfg
}

// excerpt is what a log request's options leave of the log: its last lines, and
// of those the first bytes.
func excerpt(text string, options url.Values) string {
	if n, err := strconv.Atoi(options.Get("tailLines")); err == nil {
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		text = strings.Join(lines[max(0, len(lines)-n):], "")
	}
	if n, err := strconv.Atoi(options.Get("limitBytes")); err == nil {
		text = text[:min(n, len(text))]
	}
	return text
}
