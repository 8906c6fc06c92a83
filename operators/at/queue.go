package at

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file says what wakes an At, and which of them goes first.

// Priorities in the queue. What is due comes first, so that a burst of Ats has
// all its pods before the first of them takes a worker for its claim, and all
// claims before the first pod runs and gives the cluster work of its own. Of prepared Ats the
// gates come first, which their alarms bring, and then the claims.
const (
	duePriority = -iota
	claimPriority
	releasePriority
	followUpPriority
	retryPriority
)

// atEvents wakes an At that changed. Its status writes arrive here too: after a claim it
// is time to release the pod.
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
			priority := followUpPriority
			if pod, ok := e.ObjectNew.(*corev1.Pod); ok && isRejection(pod) {
				priority = duePriority // only what is seen soon is known not to have run
			}
			wake(e.ObjectNew, priority, q)
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
