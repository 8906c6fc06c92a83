package webserver

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/run"
)

// Operator is the WebServer operator.
var Operator = run.Operator{
	Name:        name,
	AddToScheme: webv1.AddToScheme,
	Kinds:       []run.Kind{{Object: &webv1.WebServer{}, SetUp: setUp}},
	Owns: []client.Object{
		&appsv1.Deployment{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{},
		&autoscalingv2.HorizontalPodAutoscaler{}, &networkingv1.Ingress{}, &corev1.Pod{},
	},
}

const (
	name = "webserver"

	// workers is how many WebServers are worked on at once. They wait for the
	// API server most of the time.
	workers = 32

	// Retries start fast, and stay fast enough that a port or a name that was
	// taken is noticed to be free.
	firstRetry, slowestRetry = 50 * time.Millisecond, 15 * time.Second
)

// setUp adds the controller to the manager.
func setUp(mgr ctrl.Manager) error {
	if err := registerMetrics(); err != nil {
		return err
	}
	r := &reconciler{
		client: mgr.GetClient(),
		cache:  mgr.GetCache(),
		live:   mgr.GetAPIReader(),
		children: apply.Children{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Manager: managedBy,
			Settled: []string{"nodePort", "replicas"}, // by the API server, by an autoscaler
		},
		events:    events{mgr.GetEventRecorder(managedBy)},
		writes:    apply.NewMemory(),
		digests:   newDigests(),
		guidePort: &guidePort{},
		now:       time.Now,
	}
	for _, index := range []struct {
		object client.Object
		name   string
		values client.IndexerFunc
	}{
		{&webv1.WebServer{}, sourceIndex, sourcesOf},
		{&webv1.WebServer{}, podsIndex, func(obj client.Object) []string { return []string{names.LabelValue(obj.GetName())} }},
		{&corev1.Service{}, guidePortIndex, hasGuidePort},
	} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), index.object, index.name, index.values); err != nil {
			return err
		}
	}
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &webv1.WebServer{}, handler.OnlyControllerOwner())
	// The reconciler is complete before the first watch: it may be at work then.
	var c controller.Controller
	watch := func(obj client.Object) error {
		return c.Watch(source.Kind(mgr.GetCache(), obj, owner, r.writes.Deletions(kindOf(obj))))
	}
	server, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	unwatch := func(ctx context.Context, obj client.Object) error { return mgr.GetCache().RemoveInformer(ctx, obj) }
	r.optional = []*optionalKind{
		{childKind: httpRouteKind, field: "spec.gateway", from: "the Gateway API", server: server, watch: watch, unwatch: unwatch,
			asked: func(ws *webv1.WebServer) bool { return ws.Spec.Gateway != nil }},
		{childKind: routeKind, field: "spec.route", from: "OpenShift's router", server: server, watch: watch, unwatch: unwatch,
			asked: func(ws *webv1.WebServer) bool { return ws.Spec.Route != nil }},
	}
	c, err = controller.New(name, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, slowestRetry),
	})
	if err != nil {
		return err
	}
	sources := []source.Source{
		source.Kind(mgr.GetCache(), client.Object(&webv1.WebServer{}), &handler.EnqueueRequestForObject{}),
		source.Kind(mgr.GetCache(), client.Object(&corev1.Pod{}), r.ofIndex(podsIndex, podOwner)),
	}
	sources = append(sources, source.Kind(mgr.GetCache(), client.Object(&autoscalingv1.HorizontalPodAutoscaler{}), r.autoscaled(), comesOrGoes()))
	for _, kind := range builtIn {
		sources = append(sources, source.Kind(mgr.GetCache(), kind.empty(), owner, r.writes.Deletions(kind.kind)))
	}
	for _, kind := range []string{configMapKind, secretKind} {
		sources = append(sources,
			source.Kind(mgr.GetCache(), metadataOf(kind), owner),
			source.Kind(mgr.GetCache(), metadataOf(kind), r.ofIndex(sourceIndex, sourceName(kind))))
	}
	for _, src := range sources {
		if err := c.Watch(src); err != nil {
			return err
		}
	}

	for _, kind := range r.optional {
		// What was asked for earlier may have to be removed now.
		if _, err := kind.served(context.Background()); err != nil {
			return err
		}
	}
	return nil
}
