package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/fairlead/internal/kit/metrics"
)

const (
	// reconcileTimeout bounds one reconcile, so that an API server that never
	// answers cannot hold a worker for ever.
	reconcileTimeout = 30 * time.Second
	// crdPollInterval is how often the manager looks for a kind that is not served. It is
	// polled and not watched because a watch on CRDs would need rights on the whole
	// cluster.
	crdPollInterval = 5 * time.Second
	// syncTimeout is how long a cache may take to fill. It takes for ever
	// without the right to list the kind, which may be given any time.
	syncTimeout = 365 * 24 * time.Hour
)

// New makes the manager that runs the given operators. Start it.
func New(cfg *rest.Config, options Options, operators ...Operator) (manager.Manager, error) {
	if disabledIfEmpty(options.MetricsAddress) != "0" && options.MetricsFilter == nil {
		return nil, errors.New("metrics need a filter, or everybody could read them")
	}
	cfg = rest.CopyConfig(cfg)
	// The API server's priority and fairness sets the pace, not the client.
	cfg.QPS = -1
	cfg.UserAgent = "fairlead/" + names(operators)

	scheme, err := schemeOf(operators)
	if err != nil {
		return nil, err
	}
	if err := canShareCaches(scheme, operators); err != nil {
		return nil, err
	}
	if err := metrics.Register(rightsMissing); err != nil {
		return nil, err
	}

	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                 scheme,
		BaseContext:            options.BaseContext,
		Cache:                  cacheOptions(options.Namespaces, operators),
		HealthProbeBindAddress: options.ProbeAddress,
		Metrics: metricsserver.Options{
			BindAddress:    disabledIfEmpty(options.MetricsAddress),
			SecureServing:  true,
			FilterProvider: options.MetricsFilter,
		},
		LeaderElection:                options.Election == Lease,
		LeaderElectionID:              lockName(operators),
		LeaderElectionNamespace:       options.ElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaderElectionLabels:          BuildLabels(),
		Controller: config.Controller{
			EnableWarmup:          new(true),
			CacheSyncTimeout:      syncTimeout,
			ReconciliationTimeout: reconcileTimeout,
			// Tests run many managers in one process, and here each
			// controller's name is its kind's, so it is unique anyway.
			SkipNameValidation: new(true),
		},
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	starter := &starter{mgr: mgr, options: options, operators: operators}
	if err := mgr.AddReadyzCheck("started", starter.ready); err != nil {
		return nil, err
	}
	return mgr, mgr.Add(starter)
}

func schemeOf(operators []Operator) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	for _, operator := range operators {
		if err := operator.AddToScheme(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// canShareCaches returns an error if one operator needs all objects of a kind in the
// cache and another only its own: the cache has one selection for each kind, also
// for objects that are read as metadata only.
func canShareCaches(scheme *runtime.Scheme, operators []Operator) error {
	owners := map[schema.GroupVersionKind]string{}
	for _, operator := range operators {
		for _, kind := range operator.Kinds {
			for _, object := range kind.Owns {
				gvk, err := apiutil.GVKForObject(object, scheme)
				if err != nil {
					return err
				}
				owners[gvk] = operator.Name
			}
		}
	}
	for _, operator := range operators {
		for _, kind := range operator.Kinds {
			for _, object := range slices.Concat(kind.Watches, kind.OwnsAmong) {
				gvk, err := apiutil.GVKForObject(object, scheme)
				if err != nil {
					return err
				}
				if owner := owners[gvk]; owner != "" {
					return fmt.Errorf("operator %s watches every %s, and operator %s only its own: that one has to name it as metadata", operator.Name, gvk.Kind, owner)
				}
			}
		}
	}
	return nil
}

// cacheOptions keeps the caches small: of the kinds that the operators own only
// the objects that they made, unless those of others concern them, and of all other
// objects no managed fields, and of Nodes no status, which nobody reads. It names no kind that may be missing: a
// cache with options for one cannot be made.
func cacheOptions(namespaces []string, operators []Operator) cache.Options {
	options := cache.Options{
		DefaultTransform: bare,
		ByObject:         map[client.Object]cache.ByObject{},

		DefaultWatchErrorHandler: (&rights{log: ctrl.Log.WithName("rights")}).onWatchError,
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}

	for _, child := range ownedBy(operators, func(k Kind) []client.Object { return k.OwnsAmong }) {
		options.ByObject[child.object] = cache.ByObject{Transform: bareUnlessWrittenBy(child.owners)}
	}
	for _, child := range ownedBy(operators, func(k Kind) []client.Object { return k.Owns }) {
		requirement, err := labels.NewRequirement(ManagedByLabel, selection.In, child.owners)
		if err != nil {
			panic(err) // an operator's name that is no label value: a mistake in its source
		}
		options.ByObject[child.object] = cache.ByObject{
			Label: labels.NewSelector().Add(*requirement),
			// With managed fields: they say what is the operator's own.
			Transform: func(object any) (any, error) { return object, nil },
		}
	}
	return options
}

// owned is a kind of child, and the operators that own some.
type owned struct {
	object client.Object
	owners []string
}

// ownedBy are the kinds of children of all operators, each once.
func ownedBy(operators []Operator, children func(Kind) []client.Object) map[string]*owned {
	all := map[string]*owned{}
	for _, operator := range operators {
		for _, kind := range operator.Kinds {
			for _, object := range children(kind) {
				goType := fmt.Sprintf("%T", object)
				if all[goType] == nil {
					all[goType] = &owned{object: object}
				}
				if owner := ManagedBy(operator.Name); !slices.Contains(all[goType].owners, owner) {
					all[goType].owners = append(all[goType].owners, owner)
				}
			}
		}
	}
	return all
}

// bareUnlessWrittenBy takes the managed fields off objects that none of the operators has written. Those of a child
// say whose it is, even without its label.
func bareUnlessWrittenBy(operators []string) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if obj, is := object.(client.Object); is && !slices.ContainsFunc(obj.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
			return slices.Contains(operators, f.Manager)
		}) {
			obj.SetManagedFields(nil)
		}
		return object, nil
	}
}

// largestAnnotation is the most bytes of an annotation that is cached. Those that the operators read are hashes and names.
const largestAnnotation = 1 << 10

// bare takes the managed fields off an object; off a Node its status, which is most of it; and off what is cached as
// metadata, such as the Secrets of others, the copies of its content that kubectl apply and other tools keep in
// annotations.
func bare(object any) (any, error) {
	switch object := object.(type) {
	case *corev1.Node:
		object.Status = corev1.NodeStatus{}
	case *metav1.PartialObjectMetadata:
		maps.DeleteFunc(object.Annotations, func(name, value string) bool {
			return name == corev1.LastAppliedConfigAnnotation || len(value) > largestAnnotation
		})
	}
	return cache.TransformStripManagedFields()(object)
}

// lockName is the same for all replicas that run the same operators.
func lockName(operators []Operator) string {
	if len(operators) == 1 {
		return LockName(operators[0].Name)
	}
	return LockName(All)
}

// LockName is that of the lock of a manager's leader, by the word on its command line.
func LockName(word string) string {
	if word == All {
		return "fairlead-leader"
	}
	return ManagedBy(word) + "-leader"
}

func names(operators []Operator) string {
	var names []string
	for _, operator := range operators {
		names = append(names, operator.Name)
	}
	return strings.Join(names, "+")
}

func disabledIfEmpty(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// starter sets up the controllers of the kinds, each as soon as its CRD is
// served.
type starter struct {
	mgr       manager.Manager
	options   Options
	operators []Operator
	lock      lifeLock
	started   atomic.Bool
}

// ready is the readiness probe: every kind that is served has been set up and
// its caches are filled. A replica that waits for its turn to lead is ready.
func (s *starter) ready(req *http.Request) error {
	if s.lock.waiting.Load() {
		return nil
	}
	if !s.started.Load() {
		return errors.New("the operators are being set up")
	}
	ctx, cancel := context.WithTimeout(req.Context(), time.Second)
	defer cancel()
	if !s.mgr.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the caches are being filled")
	}
	return nil
}

// NeedLeaderElection lets the starter run on every replica: the controllers
// that it sets up fill their caches at once, and reconcile only when elected.
func (*starter) NeedLeaderElection() bool { return false }

// Start sets up what is served, and continues to look for what is not.
func (s *starter) Start(ctx context.Context) error {
	log := s.mgr.GetLogger().WithName("start")
	if s.options.Election == ForLife {
		if err := s.lock.acquire(ctx, s.mgr, lockName(s.operators)); err != nil {
			return err
		}
	}
	if reporter := s.newConditionReporter(); reporter != nil {
		if err := s.mgr.Add(reporter); err != nil {
			return err
		}
	}
	server, err := discovery.NewDiscoveryClientForConfigAndClient(s.mgr.GetConfig(), s.mgr.GetHTTPClient())
	if err != nil {
		return err
	}

	var waiting []Kind
	for _, operator := range s.operators {
		waiting = append(waiting, operator.Kinds...)
	}
	for logged := false; len(waiting) > 0; logged = true {
		var missing []Kind
		for _, kind := range waiting {
			gvk, err := apiutil.GVKForObject(kind.Object, s.mgr.GetScheme())
			if err != nil {
				return err
			}
			served, err := serves(server, gvk.GroupVersion().String(), gvk.Kind)
			switch {
			case err != nil:
				log.Error(err, "cannot look up a kind on the API server: retrying", "kind", gvk.GroupKind().String())
				missing = append(missing, kind)
			case !served:
				if !logged {
					log.Info("kind is not installed: it starts when its CRD appears", "kind", gvk.GroupKind().String())
				}
				missing = append(missing, kind)
			default:
				if err := kind.setUp(s.mgr, s.options.ClusterDomain); err != nil {
					return fmt.Errorf("set up %s: %w", gvk.GroupKind(), err)
				}
			}
		}
		waiting = missing
		s.started.Store(true)
		if len(waiting) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(crdPollInterval):
		}
	}
	<-ctx.Done()
	return nil
}

// serves says whether the API server has the kind.
func serves(server discovery.ServerResourcesInterface, groupVersion, kind string) (bool, error) {
	resources, err := server.ServerResourcesForGroupVersion(groupVersion)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	for _, resource := range resources.APIResources {
		if resource.Kind == kind {
			return true, nil
		}
	}
	return false, nil
}
