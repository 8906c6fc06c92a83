//go:build apiserver

package webserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/pace"
)

// crdOf is a CRD that takes anything, in the place of a kind that the test's
// API server has not.
func crdOf(kind string) *apiextensionsv1.CustomResourceDefinition {
	gvk := unstructuredOf(kind).GroupVersionKind()
	plural := strings.ToLower(gvk.Kind) + "s"
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = plural + "." + gvk.Group
	crd.Annotations = map[string]string{"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api"}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: gvk.Kind, ListKind: gvk.Kind + "List", Plural: plural, Singular: strings.ToLower(gvk.Kind)},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: gvk.Version, Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", XPreserveUnknownFields: new(true)}, "status": {Type: "object", XPreserveUnknownFields: new(true)},
				},
			}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}},
	}
	return crd
}

// optionalCRDs are those of all kinds that the test's API server has not.
func optionalCRDs(kinds ...string) envtest.CRDInstallOptions {
	var o envtest.CRDInstallOptions
	for _, kind := range kinds {
		o.CRDs = append(o.CRDs, crdOf(kind))
	}
	return o
}

// installOptionalKinds has the API server serve them until the test ends.
func installOptionalKinds(t *testing.T) { install(t, httpRouteKind, routeKind) }

// install has the API server serve some of them until the test ends.
func install(t *testing.T, kinds ...string) {
	t.Helper()
	options := optionalCRDs(kinds...)
	if _, err := envtest.InstallCRDs(testkit.Server(t).Config, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := envtest.UninstallCRDs(testkit.Server(t).Config, options); err != nil {
			t.Error(err)
		}
		// Whoever installs one that is not yet gone has it go a moment later.
		scheme := runtime.NewScheme()
		if err := apiextensionsv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		c, err := client.New(testkit.Server(t).Config, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		// An operator that starts and is told of the kind would wait for its objects.
		served, err := discovery.NewDiscoveryClientForConfig(testkit.Server(t).Config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pace.Until(context.Background(), 30*time.Second, func() error {
			for _, crd := range options.CRDs {
				if err := c.Get(context.Background(), client.ObjectKeyFromObject(crd), crd.DeepCopy()); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%s is still there: %w", crd.Name, err)
				}
				if _, err := served.ServerResourcesForGroupVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%s is still served: %w", crd.Name, err)
				}
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// TestOptionalKinds: status reports a kind that the cluster does not have; the object is
// made once the kind appears, repaired, and removed when it is not requested any more.
func TestOptionalKinds(t *testing.T) {
	usual := optionalPoll
	optionalPoll = 500 * time.Millisecond
	t.Cleanup(func() { optionalPoll = usual })
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, story(s.R, func(ws *webv1.WebServer) {
		ws.Spec.Gateway = &webv1.GatewaySpec{Name: "public", Namespace: "gateways", Hostnames: []string{"www.example.com"}}
		ws.Spec.Route = &webv1.RouteSpec{Host: "www.example.com", EdgeTLS: true}
	})))
	if ready := s.waitsFor("HTTPRouteNotInstalled"); ready.Message != "The cluster has no kind HTTPRoute: install the Gateway API, or leave spec.gateway out" {
		t.Errorf("message %q", ready.Message)
	}
	reinstall := func() {
		_, err := envtest.InstallCRDs(testkit.Server(t).Config, optionalCRDs(httpRouteKind, routeKind))
		s.Must(err)
	}
	reinstall()
	s.settled(reasonReady, "nginx:1")
	for _, kind := range []string{httpRouteKind, routeKind} {
		right := func() error {
			got, err := read(ctx, s.R, "web", unstructuredOf(kind))
			if err != nil {
				return err
			}
			spec, _, _ := unstructured.NestedMap(got.Object, "spec")
			if text := fmt.Sprint(spec); !strings.Contains(text, "web-service") || !strings.Contains(text, "www.example.com") {
				return fmt.Errorf("%s %v", kind, spec)
			}
			return nil
		}
		s.Within(5*time.Second, right)
		obj := unstructuredOf(kind)
		obj.SetNamespace(s.R.Namespace)
		obj.SetName("web")
		s.Must(s.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"spec":null}`))))
		t.Logf("%s: repaired after %v", kind, s.Within(time.Second, right))
		s.Must(s.Delete(ctx, obj))
		t.Logf("%s: back after %v", kind, s.Within(time.Second, right))
	}
	s.settled(reasonReady, "nginx:1")
	s.Must(s.Counter.Silence(ctx, 2*time.Second))

	// Status also reports a kind that is uninstalled, and it is watched once restored.
	s.Must(envtest.UninstallCRDs(testkit.Server(t).Config, optionalCRDs(routeKind)))
	s.waitsFor("RouteNotInstalled")
	reinstall()
	s.settled(reasonReady, "nginx:1")
	route := unstructuredOf(routeKind)
	route.SetNamespace(s.R.Namespace)
	route.SetName("web")
	s.Must(s.Delete(ctx, route))
	s.Within(5*time.Second, func() error { _, err := read(ctx, s.R, "web", unstructuredOf(routeKind)); return err })
	s.settled(reasonReady, "nginx:1")

	s.Must(s.Patch(ctx, mustCurrent(s), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"gateway":null,"route":null}}`))))
	s.Within(5*time.Second, func() error {
		for _, kind := range []string{httpRouteKind, routeKind} {
			if _, err := read(ctx, s.R, "web", unstructuredOf(kind)); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("%s is still there: %w", kind, err)
			}
		}
		return nil
	})
}

// TestGateway: the URL is that of the Gateway's listener, what the Gateway says of the HTTPRoute is in Ready, and the
// Gateway is not read at rest.
func TestGateway(t *testing.T) {
	install(t, httpRouteKind, gatewayKind)
	s, ctx := newStage(t), context.Background()
	gateway := unstructuredOf(gatewayKind)
	gateway.SetNamespace(s.R.Namespace)
	gateway.SetName("edge")
	gateway.Object["spec"] = map[string]any{"listeners": []any{
		map[string]any{"name": "http", "protocol": "HTTP", "port": int64(80)},
		map[string]any{"name": "https", "protocol": "HTTPS", "port": int64(8443), "hostname": "*.example.com"},
	}}
	s.Must(s.Create(ctx, gateway))
	s.Must(s.Create(ctx, story(s.R, func(ws *webv1.WebServer) {
		ws.Spec.Gateway = &webv1.GatewaySpec{Name: "edge", SectionName: "https", Hostnames: []string{"www.example.com"}}
	})))
	hasURL := func(want string) func() error {
		return func() error {
			if got := mustCurrent(s).Status.URL; got != want {
				return fmt.Errorf("URL %q, want %q", got, want)
			}
			return nil
		}
	}
	s.settled(reasonReady, "nginx:1")
	s.Within(5*time.Second, hasURL("https://www.example.com:8443"))
	s.Must(s.Counter.Silence(ctx, 2*time.Second))

	says := func(status, reason string) {
		route, err := read(ctx, s.R, "web", unstructuredOf(httpRouteKind))
		s.Must(err)
		refs, _, _ := unstructured.NestedSlice(route.Object, "spec", "parentRefs")
		route.Object["status"] = map[string]any{"parents": []any{map[string]any{"parentRef": refs[0], "conditions": []any{map[string]any{
			"type": "Accepted", "status": status, "observedGeneration": route.GetGeneration(), "reason": reason, "message": "so says the Gateway",
		}}}}}
		s.Must(s.Status().Update(ctx, route))
	}
	says("False", "NotAllowedByListeners")
	if ready := s.waitsFor(reasonRouteRefused); ready.Message != `Gateway "edge" does not accept the HTTPRoute: NotAllowedByListeners: so says the Gateway` {
		t.Errorf("message %q", ready.Message)
	}
	s.Must(hasURL("")())
	says("True", "Accepted")
	s.settled(reasonReady, "nginx:1")
	s.Must(hasURL("https://www.example.com:8443")())
	s.Must(s.Delete(ctx, gateway))
	s.patch(`{"spec":{"gateway":{"hostnames":["shop.example.com"]}}}`)
	s.Within(5*time.Second, hasURL("http://shop.example.com"))
}
