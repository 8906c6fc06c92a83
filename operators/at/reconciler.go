package at

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/status"
)

// +kubebuilder:rbac:groups=at.example.com;cnat.programming-kubernetes.info,resources=ats,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=at.example.com;cnat.programming-kubernetes.info,resources=ats/status,verbs=update
// +kubebuilder:rbac:groups=at.example.com;cnat.programming-kubernetes.info,resources=ats/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Priorities in the queue. What is due comes first, so that a burst of Ats has
// all its pods before the first of them takes a worker for its claim, and all
// claims before the first pod runs and gives the cluster work of its own.
const (
	duePriority = -iota
	claimPriority
	releasePriority
	followUpPriority
	retryPriority
)

// conflictWait is when an At is looked at again after a conflict, should the
// event that tells of the other's write not come sooner.
const conflictWait = time.Second

type reconciler struct {
	group  group
	client client.Client // reads from the cache
	live   client.Reader // reads from the API server
	logs   podLogs
	events events
	alarms *alarms
	writes *apply.Memory
	// refusals are held back; see there.
	refusals *refusals
	// takenBack are the Ats whose pod got its marks back, and is not to get
	// them again soon.
	takenBack *refusals
	hidden    *hidden
	now       func() time.Time
}

// Reconcile takes an At one step on: see decide for which. It never waits: what
// it starts comes back as a watch event, what only time brings as an alarm.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := r.group.newObject()
	if err := r.client.Get(ctx, req.NamespacedName, obj); apierrors.IsNotFound(err) {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	obj.GetObjectKind().SetGroupVersionKind(r.group.gvk)
	at := r.group.view(obj)
	before := at.Status.DeepCopy()

	seen, err := r.observe(ctx, at)
	if err != nil {
		return afterError(err)
	}
	next := decide(at, seen)
	failure := r.act(ctx, obj, at, seen, next)
	at.Status = summarize(at, seen, next, failure)
	wakes := earliest{next.wakeAt}
	switch asked := next.action == create || next.action == release || next.action == withdraw; {
	case asked && isTold(failure):
		again := seen.now.Add(refusalBackoff(troubledSince(at, seen.now), seen.now))
		r.refusals.note(at, next.action, again)
		wakes.add(again)
		failure = nil
	case asked && failure == nil:
		r.refusals.forget(req.NamespacedName)
	}
	if next.action == create && failure == nil && r.hidden.has(key(at), r.group.podName(at, at.Status.Attempts+1)) {
		wakes.add(seen.now) // no event will tell
	}
	r.alarms.set(req.NamespacedName, wakes.time)

	// Status is written on failure too: that is when people read it.
	if err := errors.Join(failure, r.report(ctx, obj, before, &at.Status)); err != nil {
		return afterError(err)
	}
	return ctrl.Result{}, nil
}

// report stores the status if it differs, and tells of it once it is stored.
func (r *reconciler) report(ctx context.Context, obj client.Object, before, after *atv1alpha1.AtStatus) error {
	wrote, err := status.Write(ctx, r.client, obj, before, after)
	if err != nil || !wrote {
		return err
	}
	r.writes.Note(atKind, obj)
	r.tell(ctx, obj, before, after)
	return nil
}

// afterError puts a retry behind what is due. A conflict, or an At that is gone,
// is no error: somebody else has written, and the event that tells it is on
// its way.
func afterError(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: conflictWait, Priority: new(retryPriority)}, nil
	}
	return ctrl.Result{Priority: new(retryPriority)}, err
}

// isTold says whether a failure is one that status tells and that is retried
// at the pace of refusalBackoff.
func isTold(failure error) bool {
	var conflict *apply.ConflictError
	return errors.As(failure, &conflict) || apply.IsRefusal(failure)
}

// troubledSince is since when an At has not been ready.
func troubledSince(at *atv1alpha1.At, now time.Time) time.Time {
	for _, condition := range at.Status.Conditions {
		if condition.Type == atv1alpha1.ConditionReady && condition.Status == metav1.ConditionFalse {
			return condition.LastTransitionTime.Time
		}
	}
	return now
}

// forget drops what is kept in memory about an At that is gone.
func (r *reconciler) forget(key types.NamespacedName) {
	r.alarms.set(key, time.Time{})
	r.refusals.forget(key)
	r.takenBack.forget(key)
	r.hidden.note(key, nil)
	r.writes.Forget(atKind, key)
}

// atEvents wakes an At that changed. Its status writes come back here too: after
// a claim it is time to release the pod.
func atEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			q.Add(requestFor(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			priority := duePriority
			if e.ObjectOld.GetGeneration() == e.ObjectNew.GetGeneration() {
				priority = releasePriority
			}
			addWithPriority(q, priority, requestFor(e.ObjectNew))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			q.Add(requestFor(e.Object))
		},
	}
}

// podEvents wakes the At of the group that a pod was made for, also one that only
// has the name of the At that it was: it waits for that pod to go.
func podEvents(gvk schema.GroupVersionKind) handler.EventHandler {
	wake := func(pod client.Object, priority int, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		at := markedOwner(pod, gvk)
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == gvk.Kind && owner.APIVersion == gvk.GroupVersion().String() {
			at = owner.Name
		}
		if at == "" {
			return
		}
		addWithPriority(q, priority, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: at}})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object, claimPriority, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.ObjectNew, followUpPriority, q)
			if len(e.ObjectNew.GetOwnerReferences()) < len(e.ObjectOld.GetOwnerReferences()) {
				wake(e.ObjectOld, followUpPriority, q) // whose it was
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object, followUpPriority, q)
		},
	}
}

func requestFor(obj client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}

func addWithPriority(q workqueue.TypedRateLimitingInterface[reconcile.Request], priority int, req reconcile.Request) {
	if pq, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, req)
		return
	}
	q.Add(req)
}
