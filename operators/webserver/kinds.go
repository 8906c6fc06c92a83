package webserver

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/services"
)

// +kubebuilder:rbac:groups=my.domain,resources=webservers,verbs=get;list;watch
// +kubebuilder:rbac:groups=my.domain,resources=webservers/status;webservers/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes/custom-host,verbs=create;update
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// The kinds of children by name.
const (
	webServerKind  = "WebServer"
	deploymentKind = "Deployment"
	httpRouteKind  = "HTTPRoute"
	gatewayKind    = "Gateway"
	routeKind      = "Route"
	configMapKind  = "ConfigMap"
	secretKind     = "Secret"
)

// optional are the kinds that not every cluster has: the field that requests one, and
// what installs it.
var optional = map[string]struct{ group, field, from string }{
	httpRouteKind: {"gateway.networking.k8s.io", "spec.gateway", "the Gateway API"},
	gatewayKind:   {"gateway.networking.k8s.io", "spec.gateway", "the Gateway API"},
	routeKind:     {"route.openshift.io", "spec.route", "OpenShift's router"},
}

// children are the kinds of objects that belong to a WebServer.
var children = []loop.Child[*webv1.WebServer]{
	{Empty: &appsv1.Deployment{}, Name: childName},
	{Empty: &corev1.Service{}, Name: serviceName},
	{Empty: &policyv1.PodDisruptionBudget{}, Name: childName, Among: true},
	{Empty: &autoscalingv2.HorizontalPodAutoscaler{}, Name: childName},
	{Empty: &networkingv1.Ingress{}, Name: childName},
	{Empty: unstructuredOf(httpRouteKind), Name: childName,
		Requested: func(ws *webv1.WebServer) bool { return ws.Spec.Gateway != nil }},
	{Empty: unstructuredOf(routeKind), Name: childName,
		Requested: func(ws *webv1.WebServer) bool { return ws.Spec.Route != nil }},
	{Empty: &appsv1.ControllerRevision{}},     // what can be gone back to
	{Empty: contents.Metadata(configMapKind)}, // the copies of what pods are given
	{Empty: contents.Metadata(secretKind)},
}

// watches are the other kinds of which a change is news.
var watches = []loop.Watch[*webv1.WebServer]{
	services.Watch(serviceName),
	disruption.Watch[*webv1.WebServer](webServerKind),
	{
		Object: &corev1.Pod{}, Labelled: true,
		Index:  "pods",
		Value:  func(pod client.Object) string { return pod.GetLabels()[podsOf] },
		Values: func(ws *webv1.WebServer) []string { return []string{names.LabelValue(ws.Name)} },
	},
	{
		Object: contents.Metadata(configMapKind),
		Index:  "configMaps",
		Value:  client.Object.GetName,
		Values: func(ws *webv1.WebServer) []string { return sourcesOf(ws, configMapKind) },
	},
	{
		Object: contents.Metadata(secretKind),
		Index:  "secrets",
		Value:  client.Object.GetName,
		Values: func(ws *webv1.WebServer) []string { return sourcesOf(ws, secretKind) },
	},
	{
		Object:  &autoscalingv1.HorizontalPodAutoscaler{},
		Handler: autoscaled,
		If:      []predicate.Predicate{comesOrGoes()},
	},
}

// unstructuredOf is an empty object of a kind that not every cluster has.
func unstructuredOf(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: optional[kind].group, Version: "v1", Kind: kind})
	return u
}
