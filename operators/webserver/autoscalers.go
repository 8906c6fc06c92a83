package webserver

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/loop"
)

// This file is about autoscalers that the operator does not own: a
// HorizontalPodAutoscaler that a user, or KEDA, made for the Deployment. They are watched
// in version 1 of their API: in version 2 the cache has only the operator's own.

// observeAutoscaler says whether an autoscaler that the operator does not own sets the
// replicas. The Deployment does not show who wrote them last: a scale to 0 leaves no
// trace. While they differ from the spec's, the API server is queried, too, because an
// autoscaler may be newer than the cache.
func observeAutoscaler(ctx context.Context, r *loop.Reader, ws *webv1.WebServer, d *appsv1.Deployment) (bool, error) {
	if ws.Spec.Autoscaling != nil || d.UID == "" || d.Spec.Replicas == nil {
		return false, nil
	}
	var list autoscalingv1.HorizontalPodAutoscalerList
	if err := r.List(ctx, &list, client.InNamespace(ws.Namespace)); err != nil {
		return false, err
	}
	if hasAutoscaler(list, ws, d) || *d.Spec.Replicas == *ws.Spec.Replicas {
		return hasAutoscaler(list, ws, d), nil
	}
	if err := r.Live.List(ctx, &list, client.InNamespace(ws.Namespace)); err != nil {
		return false, err
	}
	return hasAutoscaler(list, ws, d), nil
}

func hasAutoscaler(list autoscalingv1.HorizontalPodAutoscalerList, ws *webv1.WebServer, d *appsv1.Deployment) bool {
	return slices.ContainsFunc(list.Items, func(hpa autoscalingv1.HorizontalPodAutoscaler) bool {
		target := hpa.Spec.ScaleTargetRef
		return target.Kind == deploymentKind && target.Name == d.Name && !isOwned(&hpa, ws)
	})
}

// autoscaled wakes the WebServer whose Deployment an autoscaler is for.
func autoscaled(cached client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		target := obj.(*autoscalingv1.HorizontalPodAutoscaler).Spec.ScaleTargetRef
		if target.Kind != deploymentKind {
			return nil
		}
		var d appsv1.Deployment
		if err := cached.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: target.Name}, &d); err != nil {
			return nil // not the operator's; if it is, its own event follows
		}
		owner := metav1.GetControllerOf(&d)
		if owner == nil || owner.Kind != webServerKind {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: d.Namespace, Name: owner.Name}}}
	})
}

// comesOrGoes lets through what is news of an autoscaler: not what it measures.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isHPA := e.ObjectOld.(*autoscalingv1.HorizontalPodAutoscaler)
		after, isHPAToo := e.ObjectNew.(*autoscalingv1.HorizontalPodAutoscaler)
		return isHPA && isHPAToo && before.Spec.ScaleTargetRef != after.Spec.ScaleTargetRef
	}}
}

// isScaled says whether the replicas were set through the scale subresource,
// as autoscalers and kubectl scale do.
func isScaled(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "scale" && setsReplicas(f)
	})
}

// ownsReplicas says whether the replicas are a field of the operator's.
func ownsReplicas(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == managedBy && f.Subresource == "" && setsReplicas(f)
	})
}

func setsReplicas(f metav1.ManagedFieldsEntry) bool {
	return f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:replicas"`)
}

// withoutCPU is the first container that requests no CPU, of which autoscaling
// aims at a percentage; "" if all do, or there are no pods. Limits and the
// namespace's defaults have been put in by then.
func withoutCPU(seen observation) string {
	for _, pod := range seen.pods {
		if pod.Spec.Resources != nil && !pod.Spec.Resources.Requests.Cpu().IsZero() {
			continue
		}
		for _, container := range pod.Spec.Containers {
			if container.Resources.Requests.Cpu().IsZero() {
				return container.Name
			}
		}
	}
	return ""
}
