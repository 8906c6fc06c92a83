package webserver

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// behind is a WebServer behind the Gateway "edge".
func behind(options ...func(*webv1.GatewaySpec)) *webv1.WebServer {
	g := &webv1.GatewaySpec{Name: "edge", Hostnames: []string{"www.example.com"}}
	for _, option := range options {
		option(g)
	}
	return aWeb(func(ws *webv1.WebServer) { ws.Spec.Gateway = g })
}

func section(name string) func(*webv1.GatewaySpec) {
	return func(g *webv1.GatewaySpec) { g.SectionName = name }
}

func inNamespace(name string) func(*webv1.GatewaySpec) {
	return func(g *webv1.GatewaySpec) { g.Namespace = name }
}

// answered is an HTTPRoute of generation 2 with what the controllers of Gateways say of it.
func answered(parents ...any) seenOption {
	return func(seen *observation) {
		route := unstructuredOf(httpRouteKind)
		route.SetGeneration(2)
		route.Object["status"] = map[string]any{"parents": parents}
		seen.children[httpRouteKind] = route
	}
}

type fields = map[string]any

// parent is what a Gateway says of a generation.
func parent(ref fields, condition, says string, generation int64) any {
	return fields{"parentRef": ref, "conditions": []any{
		fields{"type": condition, "status": says, "observedGeneration": generation, "reason": "NotAllowed", "message": "no listener is for this namespace"},
	}}
}

// TestWhatTheGatewaySays: a route that the Gateway refuses is reported in its words, and has no URL.
func TestWhatTheGatewaySays(t *testing.T) {
	a := templateFor()
	edge := fields{"name": "edge"}
	const refused, words = "RouteNotAccepted", `Gateway "edge" does not accept the HTTPRoute: NotAllowed: no listener is for this namespace`
	at := func(namespace string) fields { return fields{"name": "edge", "namespace": namespace} }
	for name, tc := range map[string]struct {
		ws     *webv1.WebServer
		said   seenOption
		reason string
		url    string
	}{
		"nobody has answered":        {behind(), answered(), reasonReady, "http://www.example.com"},
		"accepted":                   {behind(), answered(parent(edge, "Accepted", "True", 2)), reasonReady, "http://www.example.com"},
		"refused":                    {behind(), answered(parent(edge, "Accepted", "False", 2)), refused, ""},
		"what was before is refused": {behind(), answered(parent(edge, "Accepted", "False", 1)), reasonReady, "http://www.example.com"},
		"it is open":                 {behind(), answered(parent(edge, "Accepted", "Unknown", 2)), reasonReady, "http://www.example.com"},
		"another Gateway refuses":    {behind(), answered(parent(fields{"name": "other"}, "Accepted", "False", 2)), reasonReady, "http://www.example.com"},
		"one of two controllers": {behind(), answered(parent(edge, "Accepted", "False", 2), parent(edge, "Accepted", "True", 2)),
			reasonReady, "http://www.example.com"},
		"in another namespace":        {behind(inNamespace("gateways")), answered(parent(at("gateways"), "Accepted", "False", 2)), refused, ""},
		"of that name, in this one":   {behind(inNamespace("gateways")), answered(parent(edge, "Accepted", "False", 2)), reasonReady, "http://www.example.com"},
		"the namespace is spelt out":  {behind(), answered(parent(at("shop"), "Accepted", "False", 2)), refused, ""},
		"it is spelt out in the spec": {behind(inNamespace("shop")), answered(parent(edge, "Accepted", "False", 2)), refused, ""},
		"another listener":            {behind(section("https")), answered(parent(fields{"name": "edge", "sectionName": "http"}, "Accepted", "False", 2)), reasonReady, "http://www.example.com"},
		"this listener":               {behind(section("https")), answered(parent(fields{"name": "edge", "sectionName": "https"}, "Accepted", "False", 2)), refused, ""},
		"the Service is not found":    {behind(), answered(parent(edge, "ResolvedRefs", "False", 2)), "RouteNotResolved", "http://www.example.com"},
	} {
		st := summarize(tc.ws, somethingSeen(aDeployment(a, a), aService(30010), tc.said), &plan{chosen: choice{template: a, desired: a}}, nil)
		ready := meta.FindStatusCondition(st.Conditions, status.Ready)
		if ready.Reason != tc.reason || st.URL != tc.url || (ready.Status == metav1.ConditionTrue) != (tc.reason == reasonReady) {
			t.Errorf("%s: Ready is %s, %s: %s; URL %q", name, ready.Status, ready.Reason, ready.Message, st.URL)
		}
		if tc.reason == refused && ready.Message != words {
			t.Errorf("%s: message %q", name, ready.Message)
		}
		if available := meta.FindStatusCondition(st.Conditions, webv1.ConditionAvailable); available.Reason != reasonServing {
			t.Errorf("%s: Available is %s, %s", name, available.Status, available.Reason)
		}
	}
}

// TestListener: the URL is that of the listener.
func TestListener(t *testing.T) {
	a := templateFor()
	listens := func(name, protocol string, port int64, hostname string) any {
		l := fields{"name": name, "protocol": protocol, "port": port}
		if hostname != "" {
			l["hostname"] = hostname
		}
		return l
	}
	http, https, tls := listens("http", "HTTP", 80, ""), listens("https", "HTTPS", 443, ""), listens("tls", "TLS", 443, "")
	for name, tc := range map[string]struct {
		ws        *webv1.WebServer
		listeners []any
		want      string
	}{
		"not read":                        {behind(), nil, "http://www.example.com"},
		"HTTP":                            {behind(), []any{http}, "http://www.example.com"},
		"HTTPS":                           {behind(), []any{tls, https}, "https://www.example.com"},
		"both":                            {behind(), []any{https, http}, "http://www.example.com"},
		"both, and HTTPS is named":        {behind(section("https")), []any{http, https}, "https://www.example.com"},
		"HTTP on another port":            {behind(), []any{listens("http", "HTTP", 8080, "")}, "http://www.example.com:8080"},
		"HTTPS on another port":           {behind(), []any{listens("https", "HTTPS", 8443, "")}, "https://www.example.com:8443"},
		"HTTPS on the port for HTTP":      {behind(), []any{listens("https", "HTTPS", 80, "")}, "https://www.example.com:80"},
		"HTTP for another host":           {behind(), []any{listens("http", "HTTP", 80, "other.example.com"), https}, "https://www.example.com"},
		"HTTP for all hosts of a domain":  {behind(), []any{https, listens("http", "HTTP", 8080, "*.example.com")}, "http://www.example.com:8080"},
		"HTTP for hosts of another one":   {behind(), []any{listens("http", "HTTP", 8080, "*.ample.com"), https}, "https://www.example.com"},
		"a listener that is not there":    {behind(section("other")), []any{https}, "http://www.example.com"},
		"the first of two for HTTP":       {behind(), []any{listens("a", "HTTP", 81, ""), listens("b", "HTTP", 82, "")}, "http://www.example.com:81"},
		"another protocol of one we name": {behind(section("tls")), []any{tls}, "http://www.example.com"},
	} {
		gateway := &unstructured.Unstructured{Object: fields{"spec": fields{"listeners": tc.listeners}}}
		read := func(seen *observation) { seen.listeners = listenersOf(gateway) }
		if got := summarize(tc.ws, somethingSeen(aDeployment(a, a), aService(30010), read), &plan{chosen: choice{template: a, desired: a}}, nil).URL; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// answers is a reader that answers everything with an error, or with a Gateway.
type answers struct {
	client.Reader
	err error
}

func (a answers) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.(*unstructured.Unstructured).Object["spec"] = fields{"listeners": []any{fields{"name": "https", "protocol": "HTTPS", "port": int64(443)}}}
	return a.err
}

// TestListenersAreReadIfPossible: without the right, or without the Gateway, nothing fails.
func TestListenersAreReadIfPossible(t *testing.T) {
	gateways := schema.GroupResource{Group: "gateway.networking.k8s.io", Resource: "gateways"}
	served := loop.Children{httpRouteKind: unstructuredOf(httpRouteKind)}
	for name, tc := range map[string]struct {
		ws       *webv1.WebServer
		children loop.Children
		err      error
		want     int
		fails    bool
	}{
		"it is there":         {ws: behind(), children: served, want: 1},
		"it is not there":     {ws: behind(), children: served, err: apierrors.NewNotFound(gateways, "edge")},
		"no right":            {ws: behind(), children: served, err: apierrors.NewForbidden(gateways, "edge", nil)},
		"no such kind":        {ws: behind(), children: served, err: &meta.NoKindMatchError{}},
		"no answer":           {ws: behind(), children: served, err: apierrors.NewTimeoutError("slow", 1), fails: true},
		"no Gateway is named": {ws: aWeb(), children: served, err: errors.New("it was read")},
		"no URL needs it":     {ws: behind(func(g *webv1.GatewaySpec) { g.Hostnames = nil }), children: served, err: errors.New("it was read")},
		"no kind HTTPRoute":   {ws: behind(), children: loop.Children{}, err: errors.New("it was read")},
	} {
		got, err := observeListeners(context.Background(), &loop.Reader{Live: answers{err: tc.err}, Children: tc.children}, tc.ws)
		if len(got) != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
