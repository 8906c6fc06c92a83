package services

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestTargets: a Service leads to the pods that its own slices have as ready.
func TestTargets(t *testing.T) {
	endpoint := func(pod types.UID, ready *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{UID: pod}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	}
	slice := func(owner types.UID, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
		s := discoveryv1.EndpointSlice{Endpoints: endpoints}
		if owner != "" {
			s.OwnerReferences = []metav1.OwnerReference{{Kind: "Service", UID: owner, Controller: new(true)}}
		}
		return s
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: "service"}}
	for name, tc := range map[string]struct {
		slices []discoveryv1.EndpointSlice
		want   []types.UID
	}{
		"no slice":                       {},
		"ready, not ready, and unknown":  {[]discoveryv1.EndpointSlice{slice("service", endpoint("a", new(true)), endpoint("b", new(false)), endpoint("c", nil))}, []types.UID{"a", "c"}},
		"two slices":                     {[]discoveryv1.EndpointSlice{slice("service", endpoint("a", new(true))), slice("service", endpoint("b", new(true)))}, []types.UID{"a", "b"}},
		"an earlier Service of the name": {[]discoveryv1.EndpointSlice{slice("earlier", endpoint("a", new(true)))}, nil},
		"made by somebody else":          {[]discoveryv1.EndpointSlice{slice("", endpoint("a", new(true)))}, []types.UID{"a"}},
		"an address that is no pod's":    {[]discoveryv1.EndpointSlice{slice("service", discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}})}, nil},
	} {
		if got := slices.Sorted(maps.Keys(targets(service, tc.slices))); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
