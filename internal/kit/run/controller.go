package run

import (
	"context"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"example.com/fairlead/internal/kit/outside"
)

// Parts are what a controller is made of. Those of a manager are a cache, a client of
// the API server and the clock; a simulation has its own.
type Parts struct {
	Scheme *runtime.Scheme
	Mapper meta.RESTMapper
	// Client reads from the cache and writes to the API server; Live reads from that,
	// too. Cache has unstructured objects besides.
	Client client.Client
	Live   client.Reader
	Cache  client.Reader
	// Index adds an index to the cache, before the first read by it.
	Index func(obj client.Object, field string, values client.IndexerFunc) error
	// Events records events under a name.
	Events func(name string) recorder.EventRecorder
	// Served lists what the API server has of a group and version; NotFound is an error.
	Served func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
	// Sees says whether there is the right to see a kind of which the install may leave it out. If there is not, it logs
	// what is not done without.
	Sees func(ctx context.Context, obj client.Object, without string) (bool, error)
	// Logs reads what the containers of a pod write.
	Logs func(ctx context.Context, pod types.NamespacedName, options *corev1.PodLogOptions) (io.ReadCloser, error)
	// ClusterDomain is the domain of the Kubernetes cluster, such as cluster.local; "" if it is not known.
	ClusterDomain string
	// IPv6 is whether pods have addresses of IPv6, perhaps beside others. It is false where
	// this process is no pod.
	IPv6 bool
	// Now is the time of the wall clock.
	Now func() time.Time
	// Watch begins to watch one more kind, and Unwatch ends that, while the
	// controller is at work.
	Watch   func(Source) error
	Unwatch func(context.Context, client.Object) error
}

// Source is a kind of objects whose changes are news.
type Source struct {
	Object     client.Object
	Handler    handler.EventHandler
	Predicates []predicate.Predicate
}

// Controller reconciles the objects of a kind.
type Controller struct {
	Name string
	reconcile.Reconciler
	// Sources are the kinds that wake it, the first of them its own, and Alarms the
	// instants.
	Sources []Source
	Alarms  Alarms
	// What fails is tried again after First, then twice that, and so on up to Longest.
	First, Longest time.Duration
	// AsksOthers says that its Reconciler waits, by package outside, for servers that may be silent. It may wait for
	// them in many more objects than it works on at once.
	AsksOthers bool
	// Started, if set, is called once all sources are watched. Its workers may be at work by then.
	Started func(context.Context) error
}

// Alarms wake objects at instants of the wall clock.
type Alarms interface {
	// Source is for the controller's queue.
	source.Source
	// Ring takes out what is due, and says how long to sleep until more may be; Next
	// is when the next object is due, if there is one.
	Ring() (due []types.NamespacedName, sleep time.Duration)
	Next() (at time.Time, ok bool)
}

const (
	// workers is how many objects of a kind are worked on at once. They mostly wait.
	workers = 32
	// waiting is how many there are at most with those that wait for other servers than the API server, of a kind that
	// does. Each waits two seconds for a server that is silent, so that a round of a thousand takes four, and costs
	// some kilobytes when nobody waits.
	waiting = 512
)

// inSlots reconciles as many objects at once as there are slots, the urgent ones first.
type inSlots struct {
	reconcile.Reconciler
	*outside.Slots
	priorities *priorities
}

// Reconcile reconciles an object once there is a slot. Without one until the stop there is nothing to say of it: whoever
// leads next reconciles all.
func (r inSlots) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	priority := func() int { return r.priorities.of(req) }
	r.Do(ctx, priority, func(ctx context.Context) { result, err = r.Reconciler.Reconcile(ctx, req) })
	return result, err
}

// priorities are those of the requests that are worked on, which no reconciler is told: the queue notes them as it gives
// the requests out. It gives none out again before it is done, so one that comes in meanwhile raises the priority: a user
// edits what waits for its turn in a resync.
type priorities struct {
	mu        sync.Mutex
	byRequest map[reconcile.Request]int
}

func (p *priorities) of(req reconcile.Request) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byRequest[req]
}

// queue is that of a controller.
func (p *priorities) queue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return notingQueue{priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }), p}
}

type notingQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	*priorities
}

func (q notingQueue) GetWithPriority() (req reconcile.Request, priority int, shutdown bool) {
	req, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if !shutdown {
		q.mu.Lock()
		q.byRequest[req] = priority
		q.mu.Unlock()
	}
	return req, priority, shutdown
}

func (q notingQueue) Done(req reconcile.Request) {
	q.mu.Lock()
	delete(q.byRequest, req)
	q.mu.Unlock()
	q.PriorityQueue.Done(req)
}

func (q notingQueue) Add(req reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

func (q notingQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	if o.After == 0 && !o.RateLimited {
		priority := 0
		if o.Priority != nil {
			priority = *o.Priority
		}
		q.raise(priority, requests)
	}
	q.PriorityQueue.AddWithOpts(o, requests...)
}

func (p *priorities) raise(priority int, requests []reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, req := range requests {
		if now, isWorkedOn := p.byRequest[req]; isWorkedOn {
			p.byRequest[req] = max(now, priority)
		}
	}
}

// setUp adds the controller of a kind to the manager.
func (k Kind) setUp(mgr ctrl.Manager, clusterDomain string) error {
	var c controller.Controller
	watch := func(s Source) error {
		return c.Watch(source.Kind(mgr.GetCache(), s.Object, s.Handler, s.Predicates...))
	}
	parts, err := partsOf(mgr)
	if err != nil {
		return err
	}
	parts.Watch, parts.ClusterDomain = watch, clusterDomain
	made, err := k.New(parts)
	if err != nil {
		return err
	}
	options := controller.Options{
		Reconciler:              made.Reconciler,
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](made.First, made.Longest),
	}
	if made.AsksOthers {
		noted := &priorities{byRequest: map[reconcile.Request]int{}}
		options.Reconciler = inSlots{made.Reconciler, outside.NewSlots(workers), noted}
		options.MaxConcurrentReconciles, options.NewQueue = waiting, noted.queue
	}
	c, err = controller.New(made.Name, mgr, options)
	if err != nil {
		return err
	}
	if err := c.Watch(made.Alarms); err != nil {
		return err
	}
	for _, s := range made.Sources {
		if err := watch(s); err != nil {
			return err
		}
	}
	if made.Started != nil {
		return made.Started(context.Background())
	}
	return nil
}

// partsOf are those of a manager, but for Watch and ClusterDomain.
func partsOf(mgr ctrl.Manager) (Parts, error) {
	server, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return Parts{}, err
	}
	clients, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return Parts{}, err
	}
	return Parts{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Cache: mgr.GetCache(),
		Index: func(obj client.Object, field string, values client.IndexerFunc) error {
			return mgr.GetFieldIndexer().IndexField(context.Background(), obj, field, values)
		},
		Events: func(name string) recorder.EventRecorder { return mgr.GetEventRecorder(name) },
		Served: server.ServerResourcesForGroupVersionWithContext,
		Sees:   (&lister{live: mgr.GetAPIReader(), scheme: mgr.GetScheme(), log: mgr.GetLogger().WithName("rights")}).sees,
		Logs: func(ctx context.Context, pod types.NamespacedName, options *corev1.PodLogOptions) (io.ReadCloser, error) {
			return clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
		},
		IPv6:    hasIPv6(),
		Now:     time.Now,
		Unwatch: func(ctx context.Context, obj client.Object) error { return mgr.GetCache().RemoveInformer(ctx, obj) },
	}, nil
}
