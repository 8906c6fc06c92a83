// Package services tells where a Service leads: to the pods whose addresses its
// EndpointSlices have as ready. That is what kube-proxy, an ingress controller and DNS go
// by. The pods' own status, and what a server itself answers, may be ahead of it: until the
// kubelet has probed a pod, and the slices show that, a client that connects is refused.
//
// Kubernetes puts the labels of a Service on its slices, so the cache holds only those of
// the Services that operators have made. They change when a pod's readiness does, and cost
// nothing else.
package services

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/loop"
)

// Watch has an object look again when the Service of this name leads somewhere else.
func Watch[T client.Object](service func(T) string) loop.Watch[T] {
	return loop.Watch[T]{
		Object: &discoveryv1.EndpointSlice{}, Labelled: true,
		Index:  "service",
		Value:  func(slice client.Object) string { return slice.GetLabels()[discoveryv1.LabelServiceName] },
		Values: func(obj T) []string { return []string{service(obj)} },
	}
}

// Targets are the pods that a Service leads to now.
type Targets map[types.UID]bool

// Read reads the pods that a Service leads to: none, if it is not there.
func Read(ctx context.Context, r *loop.Reader, service *corev1.Service) (Targets, error) {
	if service.UID == "" {
		return Targets{}, nil
	}
	var list discoveryv1.EndpointSliceList
	err := r.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	return targets(service, list.Items), err
}

func targets(service *corev1.Service, slices []discoveryv1.EndpointSlice) Targets {
	all := Targets{}
	for _, slice := range slices {
		if owner := metav1.GetControllerOf(&slice); owner != nil && owner.UID != service.UID {
			continue // it is of an earlier Service of that name, and about to go
		}
		for _, endpoint := range slice.Endpoints {
			// Without a word about it, an address counts as ready.
			if isReady := endpoint.Conditions.Ready; endpoint.TargetRef != nil && (isReady == nil || *isReady) {
				all[endpoint.TargetRef.UID] = true
			}
		}
	}
	return all
}
