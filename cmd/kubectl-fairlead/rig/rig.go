//go:build apiserver

package rig

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/internal/testkit"
)

// Main is the whole of a TestMain.
func Main(m *testing.M) {
	const operators = "../../../operators/"
	testkit.Main(m, testkit.Options{CRDs: []string{
		operators + "at/config/crd", operators + "etcd/config/crd", operators + "memcached/config/crd", operators + "webserver/config/crd",
	}})
}

// Rig is a namespace, and a command that works in it.
type Rig struct {
	*testing.T
	client.Client
	// Server is the one that the namespace is of.
	Server *testkit.APIServer
	// Namespace is the name of a new one.
	Namespace string

	root Command
}

// New is a rig for a root command.
func New(t *testing.T, root Command) *Rig {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")
	server := testkit.Server(t)
	c, err := client.New(server.Config, client.Options{Scheme: cli.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &Rig{T: t, Client: c, Server: server, Namespace: server.NewNamespace(t), root: root}
}

// Call runs the command with these arguments. It may request no more than docs/kubectl.md says.
func (r *Rig) Call(args ...string) Called {
	r.Helper()
	var asks asked
	got := r.Through(r.Between("", asks.note), args...)
	asks.check(r, args)
	return got
}

// For runs the command for so long, and then ends it as Ctrl-C does.
func (r *Rig) For(long time.Duration, args ...string) Called {
	r.Helper()
	ctx, stop := context.WithTimeout(r.Context(), long)
	defer stop()
	config := r.Server.Config
	server := []string{"--server", config.Host, "--certificate-authority", config.CAFile, "--token", config.BearerToken, "-n", r.Namespace}
	return call(ctx, r.root, time.Now, "", slices.Concat(server, args)...)
}

// Through runs the command against another server, to which these flags lead.
func (r *Rig) Through(server []string, args ...string) Called {
	r.Helper()
	return call(r.Context(), r.root, time.Now, "", slices.Concat(server, []string{"-n", r.Namespace}, args)...)
}

// Wants is a call that must end with this code and say all of this, on either output. It returns the output.
func (r *Rig) Wants(code int, want []string, args ...string) string {
	r.Helper()
	got := r.Call(args...)
	for _, text := range want {
		if !strings.Contains(got.Out+got.ErrOut, text) {
			r.Errorf("%s: %+v\nwant %q", strings.Join(args, " "), got, text)
		}
	}
	if got.Code != code {
		r.Errorf("%s: exit code %d, want %d: %s", strings.Join(args, " "), got.Code, code, got.ErrOut)
	}
	return got.Out
}

// Stored creates an object, and has its status written as an operator would.
func (r *Rig) Stored(o client.Object, status func()) {
	r.Helper()
	o.SetNamespace(r.Namespace)
	if err := r.Create(r.Context(), o); err != nil {
		r.Fatal(err)
	}
	status()
	if err := r.Status().Update(r.Context(), o); err != nil {
		r.Fatal(err)
	}
}

// Ready is the condition, as an operator would write it of an object's first generation.
func Ready(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{
		Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
	}}
}

// Between is a way to the API server on which some paths are forbidden, and some are answered in place of a kubelet: those
// for which answers is true. It returns the flags for [Rig.Through].
func (r *Rig) Between(forbidden string, answers func(http.ResponseWriter, *http.Request) bool) []string {
	r.Helper()
	target, err := url.Parse(r.Server.Config.Host)
	if err != nil {
		r.Fatal(err)
	}
	transport, err := rest.TransportFor(r.Server.Config)
	if err != nil {
		r.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }}
	isForbidden := regexp.MustCompile(forbidden)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case forbidden != "" && isForbidden.MatchString(q.URL.Path):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",`+
				`"code": 403, "message": "you may not"}`)
		case answers(w, q):
		default:
			proxy.ServeHTTP(w, q)
		}
	}))
	r.Cleanup(server.Close)
	return []string{"--server", server.URL}
}
