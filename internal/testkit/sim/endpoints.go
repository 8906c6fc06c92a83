package sim

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// endpoints is the EndpointSlice controller. A Service has one slice here, without ports,
// which nobody reads.
type endpoints struct{ changes }

// NewEndpoints makes an EndpointSlice controller.
func NewEndpoints(w *World) Controller { return &endpoints{changes{server: w.Server}} }

func (*endpoints) Name() string { return "endpointslice controller" }

// Act writes the first slice that is out of date.
func (c *endpoints) Act() (bool, time.Time) { return syncFirst(&c.changes, c.sync) }

func (c *endpoints) sync(service *corev1.Service) bool {
	if service.DeletionTimestamp != nil || len(service.Spec.Selector) == 0 {
		return false
	}
	want := c.slice(service)
	var is *discoveryv1.EndpointSlice
	Each(c.server, func(slice *discoveryv1.EndpointSlice) {
		if slice.Namespace == want.Namespace && slice.Name == want.Name {
			is = slice
		}
	})
	switch {
	case is == nil:
		_, err := c.server.Add(want, c.Name())
		return err == nil
	case !metav1.IsControlledBy(is, service): // it is an earlier one's of that name, and the garbage collector's
		return false
	case equality.Semantic.DeepEqual(is.Labels, want.Labels) && equality.Semantic.DeepEqual(is.Endpoints, want.Endpoints):
		return false
	}
	told := is.DeepCopy()
	told.Labels, told.Endpoints = want.Labels, want.Endpoints
	return c.server.Replace(told, c.Name()) == nil
}

// slice is what a Service leads to.
func (c *endpoints) slice(service *corev1.Service) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name + "-slice", Labels: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for key, value := range service.Labels {
		s.Labels[key] = value
	}
	s.Labels[discoveryv1.LabelServiceName] = service.Name
	s.Labels[discoveryv1.LabelManagedBy] = "endpointslice-controller.k8s.io"
	Each(c.server, func(pod *corev1.Pod) {
		if pod.Namespace != service.Namespace || !hasLabels(pod.Labels, service.Spec.Selector) || pod.Status.PodIP == "" || isOver(pod) {
			return
		}
		serves, ends := isReady(pod), pod.DeletionTimestamp != nil
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIP},
			Conditions: discoveryv1.EndpointConditions{
				Ready: new(service.Spec.PublishNotReadyAddresses || serves && !ends), Serving: &serves, Terminating: &ends,
			},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		})
	})
	slices.SortFunc(s.Endpoints, func(a, b discoveryv1.Endpoint) int { return strings.Compare(a.TargetRef.Name, b.TargetRef.Name) })
	return s
}
