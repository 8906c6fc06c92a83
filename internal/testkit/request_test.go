package testkit

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	const (
		pods  = "/api/v1/namespaces/n/pods"
		ats   = "/apis/at.example.com/v1alpha1/namespaces/n/ats"
		scale = "/apis/apps/v1/namespaces/n/deployments/d/scale"
	)
	cases := map[string]struct {
		method, url string
		want        Request
		write       bool
	}{
		"get":              {"GET", pods + "/p", Request{Verb: "get", Resource: "pods", Namespace: "n", Name: "p"}, false},
		"list":             {"GET", pods + "?limit=5", Request{Verb: "list", Resource: "pods", Namespace: "n"}, false},
		"watch":            {"GET", pods + "?watch=true", Request{Verb: "watch", Resource: "pods", Namespace: "n"}, false},
		"list of all":      {"GET", "/api/v1/pods", Request{Verb: "list", Resource: "pods"}, false},
		"create":           {"POST", pods, Request{Verb: "create", Resource: "pods", Namespace: "n"}, true},
		"custom status":    {"PATCH", ats + "/a/status", Request{Verb: "patch", Group: "at.example.com", Resource: "ats", Subresource: "status", Namespace: "n", Name: "a"}, true},
		"update a scale":   {"PUT", scale, Request{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "n", Name: "d"}, true},
		"delete":           {"DELETE", pods + "/p", Request{Verb: "delete", Resource: "pods", Namespace: "n", Name: "p"}, true},
		"delete all":       {"DELETE", pods, Request{Verb: "deletecollection", Resource: "pods", Namespace: "n"}, true},
		"evict":            {"POST", pods + "/p/eviction", Request{Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: "n", Name: "p"}, true},
		"a namespace":      {"GET", "/api/v1/namespaces/n", Request{Verb: "get", Resource: "namespaces", Name: "n"}, false},
		"finalize":         {"PUT", "/api/v1/namespaces/n/finalize", Request{Verb: "update", Resource: "namespaces", Subresource: "finalize", Name: "n"}, true},
		"event":            {"POST", "/api/v1/namespaces/n/events", Request{Verb: "create", Resource: "events", Namespace: "n"}, false},
		"new event":        {"PATCH", "/apis/events.k8s.io/v1/namespaces/n/events/e", Request{Verb: "patch", Group: "events.k8s.io", Resource: "events", Namespace: "n", Name: "e"}, false},
		"lease":            {"PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", Request{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "n", Name: "l"}, false},
		"a token's review": {"POST", "/apis/authentication.k8s.io/v1/tokenreviews", Request{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"}, false},
		"no resource":      {"GET", "/healthz", Request{Verb: "get"}, false},
		"discovery":        {"GET", "/apis/apps/v1", Request{Verb: "get"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tc.method, "https://127.0.0.1"+tc.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := parse(req)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("parse() (-want +got):\n%s", diff)
			}
			if got.isWrite() != tc.write {
				t.Errorf("isWrite() = %t, want %t", got.isWrite(), tc.write)
			}
		})
	}
}
