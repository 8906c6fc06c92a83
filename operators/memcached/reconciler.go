package memcached

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/status"
)

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status;memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// attempts is how often a step is decided anew because something was
	// otherwise than the cache had it.
	attempts = 3
	// conflictWait is when a Memcached is looked at again after a conflict,
	// should the event that tells of the other's write not come sooner.
	conflictWait = time.Second
)

// retries is how soon what was refused is tried again.
type retries = workqueue.TypedRateLimiter[types.NamespacedName]

type reconciler struct {
	client   client.Client // reads from the cache
	live     client.Reader // reads from the API server
	children apply.Children
	events   events
	writes   *apply.Memory
	digests  *digests
	limits   *limits
	retries  retries
	resizes  bool // the cluster can resize running pods
	now      func() time.Time
}

// Reconcile takes a Memcached one safe step towards its spec, and reports what
// it saw. It never waits: what it starts comes back as a watch event.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	mc := &v1alpha1.Memcached{}
	if err := r.client.Get(ctx, req.NamespacedName, mc); apierrors.IsNotFound(err) {
		r.forget(req)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if !mc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // owner references take the children along
	}
	mc.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(memcachedKind))
	before := mc.Status.DeepCopy()

	seen, err := r.observe(ctx, mc)
	if err != nil {
		return afterError(err)
	}
	if seen.behind > 0 {
		return ctrl.Result{RequeueAfter: seen.behind}, nil
	}
	var next plan
	failure := errAgain
	for range attempts {
		if !apply.AnyOf(failure, isAgain) {
			break
		}
		if next, err = decide(mc, seen); err != nil {
			return ctrl.Result{}, err
		}
		failure = r.act(ctx, mc, next)
	}
	if apply.AnyOf(failure, isAgain) {
		return ctrl.Result{}, failure
	}
	if apply.AnyOf(failure, apierrors.IsConflict) {
		return ctrl.Result{RequeueAfter: conflictWait}, nil
	}

	// Status is written on failure too: that is when people read it.
	mc.Status = summarize(mc, seen, next, failure)
	if err := r.report(ctx, mc, before); err != nil {
		return afterError(errors.Join(failure, err))
	}
	switch {
	case isReported(failure):
		// Status, and the log line of its change, say it once; the queue would
		// log every try.
		return ctrl.Result{RequeueAfter: r.retries.When(req.NamespacedName)}, nil
	case failure != nil:
		return ctrl.Result{}, failure
	}
	r.retries.Forget(req.NamespacedName)
	return ctrl.Result{RequeueAfter: next.wakeAfter}, nil
}

func isAgain(err error) bool { return errors.Is(err, errAgain) }

// report stores the status if it differs, and tells of it once it is stored.
func (r *reconciler) report(ctx context.Context, mc *v1alpha1.Memcached, before *v1alpha1.MemcachedStatus) error {
	wrote, err := status.Write(ctx, r.client, mc, before, &mc.Status)
	if err != nil || !wrote {
		return err
	}
	r.writes.Note(memcachedKind, mc)
	r.events.changed(ctx, mc, before)
	return nil
}

// afterError: a conflict, or a Memcached that is gone, is no error. Somebody
// else has written, and the event that tells it is on its way.
func afterError(err error) (ctrl.Result, error) {
	if apply.AnyOf(err, apierrors.IsConflict) || apply.AnyOf(err, apierrors.IsNotFound) {
		return ctrl.Result{RequeueAfter: conflictWait}, nil
	}
	return ctrl.Result{}, err
}

// forget drops what is kept in memory about a Memcached that is gone.
func (r *reconciler) forget(req ctrl.Request) {
	mc := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	r.writes.Forget(memcachedKind, req.NamespacedName)
	r.digests.forget(req.NamespacedName)
	r.limits.forget(req.NamespacedName)
	r.retries.Forget(req.NamespacedName)
	for _, kind := range childKinds {
		r.writes.Forget(kind.kind, client.ObjectKey{Namespace: req.Namespace, Name: kind.name(mc)})
	}
}

// The indexes of the Memcacheds in the cache.
const (
	secretIndex = "secrets"
	podsIndex   = "pods"
)

// ofIndex wakes the Memcacheds that an index has for an object.
func (r *reconciler) ofIndex(index string, value func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		var list v1alpha1.MemcachedList
		if err := r.client.List(ctx, &list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{index: value(obj)}); err != nil {
			return nil // the cache is being filled: all are looked at anyway
		}
		var requests []reconcile.Request
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: key(&list.Items[i])})
		}
		return requests
	})
}

// podOwner is the value of podsIndex that a pod has.
func podOwner(pod client.Object) string { return pod.GetLabels()[podsOf] }

// secretsOf are the Secrets whose change is news for a Memcached, for an index.
func secretsOf(obj client.Object) []string {
	var names []string
	for _, role := range roles(obj.(*v1alpha1.Memcached)) {
		names = append(names, role.secret)
	}
	return names
}

func secretMetadata() client.Object {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(secretKind))
	return obj
}
