package memcached

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/run"
)

// Operator is the Memcached operator.
var Operator = run.Operator{
	Name:        name,
	AddToScheme: v1alpha1.AddToScheme,
	Kinds:       []run.Kind{{Object: &v1alpha1.Memcached{}, SetUp: setUp}},
	Owns: []client.Object{
		&appsv1.Deployment{}, &appsv1.StatefulSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}, &corev1.Pod{},
	},
	Busy: busy,
}

// busy: another operator would finish a warm upgrade, but a server that is being
// restarted meanwhile is best not left alone. An upgrade that waits, for an image
// that cannot be pulled for example, names none: it may wait for ever.
func busy(ctx context.Context, cached client.Reader) (string, error) {
	var list v1alpha1.MemcachedList
	if err := cached.List(ctx, &list); err != nil {
		return "", err
	}
	for _, mc := range list.Items {
		if up := mc.Status.Upgrade; up != nil && up.Kind == v1alpha1.Warm && up.Server != "" {
			return fmt.Sprintf("Memcached %s/%s is being upgraded warm", mc.Namespace, mc.Name), nil
		}
	}
	return "", nil
}

const (
	name = "memcached"

	// workers is how many Memcacheds are worked on at once. They wait for the
	// API server most of the time.
	workers = 32

	// Retries start fast, and stay fast enough that a name that was taken is
	// noticed to be free.
	firstRetry, slowestRetry = 50 * time.Millisecond, 15 * time.Second
)

var managedBy = run.ManagedBy(name)

// setUp adds the controller to the manager.
func setUp(mgr ctrl.Manager) error {
	if err := registerMetrics(); err != nil {
		return err
	}
	resizes, err := servesResize(mgr)
	if err != nil {
		return err
	}
	r := &reconciler{
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		children: apply.Children{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Manager: managedBy},
		events:   events{mgr.GetEventRecorder(managedBy)},
		writes:   apply.NewMemory(),
		digests:  newDigests(),
		limits:   newLimits(),
		retries:  workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, slowestRetry),
		resizes:  resizes,
		now:      time.Now,
	}
	for _, index := range []struct {
		name   string
		values client.IndexerFunc
	}{
		{secretIndex, secretsOf},
		{podsIndex, func(obj client.Object) []string { return []string{names.LabelValue(obj.GetName())} }},
	} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Memcached{}, index.name, index.values); err != nil {
			return err
		}
	}
	c, err := controller.New(name, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, slowestRetry),
	})
	if err != nil {
		return err
	}
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha1.Memcached{}, handler.OnlyControllerOwner())
	sources := []source.Source{
		source.Kind(mgr.GetCache(), client.Object(&v1alpha1.Memcached{}), &handler.EnqueueRequestForObject{}),
		source.Kind(mgr.GetCache(), client.Object(&corev1.Pod{}), r.ofIndex(podsIndex, podOwner), r.writes.Deletions(podKind)),
		source.Kind(mgr.GetCache(), secretMetadata(), owner),
		source.Kind(mgr.GetCache(), secretMetadata(), r.ofIndex(secretIndex, client.Object.GetName)),
	}
	for _, kind := range childKinds {
		sources = append(sources, source.Kind(mgr.GetCache(), kind.empty(), owner, r.writes.Deletions(kind.kind)))
	}
	for _, src := range sources {
		if err := c.Watch(src); err != nil {
			return err
		}
	}
	return nil
}

// servesResize asks whether running pods can be resized: from Kubernetes 1.33
// on, unless it is turned off.
func servesResize(mgr ctrl.Manager) (bool, error) {
	server, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return false, err
	}
	list, err := server.ServerResourcesForGroupVersion("v1")
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" }), nil
}
