package webserver

import (
	"context"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
)

// childKind is a kind of which a WebServer has one child at most.
type childKind struct {
	kind  string
	empty func() client.Object
	name  func(*webv1.WebServer) string
}

var (
	deploymentKind = childKind{"Deployment", func() client.Object { return &appsv1.Deployment{} }, childName}
	serviceKind    = childKind{"Service", func() client.Object { return &corev1.Service{} }, serviceName}
	budgetKind     = childKind{"PodDisruptionBudget", func() client.Object { return &policyv1.PodDisruptionBudget{} }, childName}
	autoscalerKind = childKind{"HorizontalPodAutoscaler", func() client.Object { return &autoscalingv2.HorizontalPodAutoscaler{} }, childName}
	ingressKind    = childKind{"Ingress", func() client.Object { return &networkingv1.Ingress{} }, childName}
	httpRouteKind  = unstructuredKind(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"})
	routeKind      = unstructuredKind(schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"})
)

// builtIn are the kinds that every cluster has.
var builtIn = []childKind{deploymentKind, serviceKind, budgetKind, autoscalerKind, ingressKind}

func unstructuredKind(gvk schema.GroupVersionKind) childKind {
	return childKind{gvk.Kind, func() client.Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		return u
	}, childName}
}

// optionalKind is a kind that not every cluster has. It is watched from when
// it is found.
type optionalKind struct {
	childKind
	// field of the spec asks for it; from says what brings the kind.
	field, from string
	asked       func(*webv1.WebServer) bool
	server      discovery.ServerResourcesInterfaceWithContext
	watch       func(client.Object) error
	unwatch     func(context.Context, client.Object) error

	mu    sync.Mutex
	found bool
}

// served says whether the cluster has the kind. While it has not, every call
// asks the API server.
func (o *optionalKind) served(ctx context.Context) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.found {
		return true, nil
	}
	if has, err := o.isServed(ctx); err != nil || !has {
		return false, err
	}
	if err := o.watch(o.empty()); err != nil {
		return false, err
	}
	o.found = true
	return true, nil
}

// isServed asks the API server. The client's own memory of kinds is of no use: it
// never forgets one.
func (o *optionalKind) isServed(ctx context.Context) (bool, error) {
	gvk := o.empty().GetObjectKind().GroupVersionKind()
	resources, err := o.server.ServerResourcesForGroupVersionWithContext(ctx, gvk.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("ask for kind %s: %w", gvk.Kind, err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == gvk.Kind }), nil
}

// isGone says whether the cluster has lost the kind, after a write that was
// answered as if it had. It is watched anew when it is found again.
func (o *optionalKind) isGone(ctx context.Context) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if has, err := o.isServed(ctx); err != nil || has {
		return false, err
	}
	o.found = false
	return true, o.unwatch(ctx, o.empty())
}

// isFound is served, without asking.
func (o *optionalKind) isFound() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.found
}

// get reads a child from the cache; it stays empty if there is none.
func get(ctx context.Context, from client.Reader, ws *webv1.WebServer, kind childKind) (client.Object, error) {
	obj := kind.empty()
	err := from.Get(ctx, client.ObjectKey{Namespace: ws.Namespace, Name: kind.name(ws)}, obj)
	if apierrors.IsNotFound(err) {
		return kind.empty(), nil
	}
	return obj, err
}
