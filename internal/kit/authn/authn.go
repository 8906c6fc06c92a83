// Package authn decides who may read a manager's metrics. It is apart from package run because of what it is built
// of: a fifth of what an operator is, and no operator's code needs it.
package authn

import (
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Filter lets whoever the API server lets read the metrics. The filter of
// controller-runtime answers a token that the API server does not know with 500,
// as if the operator were at fault; here it is 401, as in Kubernetes itself.
func Filter(cfg *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	filter, err := filters.WithAuthenticationAndAuthorization(cfg, client)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, metrics http.Handler) (http.Handler, error) {
		checked, err := filter(log, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			metrics.ServeHTTP(w.(*answer).ResponseWriter, req)
		}))
		if err != nil {
			return nil, err
		}
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			checked.ServeHTTP(&answer{ResponseWriter: w}, req)
		}), nil
	}, nil
}

// answer is the answer to a request that the filter does not let through.
type answer struct {
	http.ResponseWriter
	code int
}

func (a *answer) WriteHeader(code int) { a.code = code } // sent with the text that follows

func (a *answer) Write(text []byte) (int, error) {
	if a.code == http.StatusInternalServerError && strings.HasPrefix(string(text), "Authentication failed") {
		a.code, text = http.StatusUnauthorized, []byte("Unauthorized\n")
	}
	a.ResponseWriter.WriteHeader(a.code)
	return a.ResponseWriter.Write(text)
}
