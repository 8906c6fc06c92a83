package webserver

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/status"
)

// +kubebuilder:rbac:groups=my.domain,resources=webservers,verbs=get;list;watch
// +kubebuilder:rbac:groups=my.domain,resources=webservers/status;webservers/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes/custom-host,verbs=create;update
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// attempts is how often a step is decided anew because something was
	// otherwise than the cache had it.
	attempts = 3
	// conflictWait is when a WebServer is looked at again after a conflict,
	// should the event that tells of the other's write not come sooner.
	conflictWait = time.Second
)

type reconciler struct {
	client    client.Client // reads from the cache
	cache     client.Reader // the cache, also of unstructured objects
	live      client.Reader // reads from the API server
	children  apply.Children
	events    events
	writes    *apply.Memory
	digests   *digests
	guidePort *guidePort
	optional  []*optionalKind
	now       func() time.Time
}

// Reconcile makes a WebServer's children what they are to be, and reports what
// has become of them. It never waits: what it starts comes back as a watch
// event.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ws := &webv1.WebServer{}
	if err := r.client.Get(ctx, req.NamespacedName, ws); apierrors.IsNotFound(err) {
		r.forget(req)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if !ws.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // owner references take the children along
	}
	ws.SetGroupVersionKind(webv1.GroupVersion.WithKind("WebServer"))
	before := ws.Status.DeepCopy()

	seen, err := r.observe(ctx, ws)
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
		if next, err = decide(ws, seen); err != nil {
			return ctrl.Result{}, err
		}
		failure = r.act(ctx, ws, &seen, next)
	}
	if apply.AnyOf(failure, isAgain) {
		return ctrl.Result{}, failure
	}
	if apply.AnyOf(failure, apierrors.IsConflict) {
		return ctrl.Result{RequeueAfter: conflictWait}, nil
	}

	// Status is written on failure too: that is when people read it.
	ws.Status = summarize(ws, seen, next, failure)
	if err := r.report(ctx, ws, before); err != nil {
		return afterError(errors.Join(failure, err))
	}
	if failure != nil {
		return ctrl.Result{}, failure
	}
	return ctrl.Result{RequeueAfter: next.wakeAfter}, nil
}

func isAgain(err error) bool { return errors.Is(err, errAgain) }

// report stores the status if it differs, and tells of it once it is stored.
func (r *reconciler) report(ctx context.Context, ws *webv1.WebServer, before *webv1.WebServerStatus) error {
	wrote, err := status.Write(ctx, r.client, ws, before, &ws.Status)
	if err != nil || !wrote {
		return err
	}
	r.writes.Note(webServerKind, ws)
	r.events.changed(ctx, ws, before)
	return nil
}

// afterError: a conflict, or a WebServer that is gone, is no error. Somebody
// else has written, and the event that tells it is on its way.
func afterError(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: conflictWait}, nil
	}
	return ctrl.Result{}, err
}

// forget drops what is kept in memory about a WebServer that is gone.
func (r *reconciler) forget(req ctrl.Request) {
	ws := &webv1.WebServer{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	r.writes.Forget(webServerKind, req.NamespacedName)
	kinds := builtIn
	for _, optional := range r.optional {
		kinds = append(kinds[:len(kinds):len(kinds)], optional.childKind)
	}
	for _, kind := range kinds {
		r.writes.Forget(kind.kind, client.ObjectKey{Namespace: req.Namespace, Name: kind.name(ws)})
	}
}

// The indexes of the WebServers in the cache.
const (
	sourceIndex = "sources"
	podsIndex   = "pods"
)

// ofIndex wakes the WebServers that an index has for an object.
func (r *reconciler) ofIndex(index string, value func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		var list webv1.WebServerList
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

// sourceName is the value of sourceIndex that a ConfigMap or Secret has.
func sourceName(kind string) func(client.Object) string {
	return func(obj client.Object) string { return kind + "/" + obj.GetName() }
}

func metadataOf(kind string) client.Object {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return obj
}
