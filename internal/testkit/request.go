package testkit

import (
	"net/http"
	"path"
	"strings"
)

// Request is an API request as the API server understands it.
type Request struct {
	Verb        string // get, list, watch, create, update, patch, delete, deletecollection
	Group       string
	Resource    string // plural, as in the path; empty for what is not a resource
	Subresource string
	Namespace   string
	Name        string
}

// parse reads a request's method and path, as kube-apiserver does.
func parse(req *http.Request) Request {
	var r Request
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		r.Group, parts = parts[1], parts[3:]
	default:
		r.Verb = strings.ToLower(req.Method)
		return r
	}
	if parts[0] == "namespaces" && len(parts) >= 3 && parts[2] != "status" && parts[2] != "finalize" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Subresource = path.Join(parts[2:]...)
	}
	r.Verb = verb(req, r.Name != "")
	return r
}

func verb(req *http.Request, named bool) string {
	switch req.Method {
	case http.MethodGet, http.MethodHead:
		watch := req.URL.Query().Get("watch")
		switch {
		case watch == "true" || watch == "1":
			return "watch"
		case named:
			return "get"
		default:
			return "list"
		}
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	return strings.ToLower(req.Method)
}

// isWrite says whether dying around this request could matter: it changes
// something that an operator or its user builds upon.
func (r Request) isWrite() bool {
	switch r.Verb {
	case "get", "list", "watch", "options":
		return false
	}
	switch r.Group {
	case "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io":
		return false
	case "":
		return r.Resource != "events"
	case "coordination.k8s.io":
		return r.Resource != "leases"
	}
	return true
}

// String is short and without the namespace, which only a test would know.
func (r Request) String() string {
	s := r.Verb + " " + r.Resource
	if r.Subresource != "" {
		s += "/" + r.Subresource
	}
	if r.Name != "" {
		s += " " + r.Name
	}
	return s
}
