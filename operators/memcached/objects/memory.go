package objects

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/podtemplate"
)

// This file is about how much memory the container of a server is given.

const mebi = 1 << 20

// What a connection takes, with room to spare. Measured were, of memcached 1.6.18 with
// what the kernel keeps, 2 KiB for an idle one, 6 KiB for one in the middle of a command,
// and 18 KiB for an idle one with TLS. Some connections are in the 64Mi that every server
// has besides its cache.
const (
	connectionTakes    = 8 << 10
	tlsConnectionTakes = 32 << 10
	connectionsIn64Mi  = 1024
)

// NeededMemory is what a container needs to hold what the spec allows: a quarter more than
// the cache for what memcached keeps besides, 64Mi, and what further connections take. The
// memory file of a warm server counts as its container's.
func NeededMemory(mc *v1alpha1.Memcached, r Rendering) resource.Quantity {
	cache := mc.Spec.Memory.Value()
	bytes := cache + cache/4 + 64*mebi
	if further := int64(mc.Spec.MaxConnections) - connectionsIn64Mi; further > 0 && !r.IsOf002 {
		each := int64(connectionTakes)
		if mc.Spec.TLS != nil {
			each = tlsConnectionTakes
		}
		bytes += further * each
	}
	return *resource.NewQuantity((bytes+mebi-1)/mebi*mebi, resource.BinarySI)
}

// setMemory sets what the container needs, unless the user's template, which it is of, says
// otherwise. Without a request, it is the limit, as Kubernetes has it.
func setMemory(server *corev1.Container, mc *v1alpha1.Memcached, r Rendering) {
	limit := NeededMemory(mc, r)
	own := OwnMemory(mc, r)
	if own.Limits != nil {
		limit = own.Limits[corev1.ResourceMemory]
	}
	request := limit
	if own.Requests != nil {
		request = own.Requests[corev1.ResourceMemory]
	}
	if own.Limits == nil && request.Cmp(limit) > 0 {
		limit = request // or the API server would refuse the pod
	}
	if server.Resources.Limits == nil {
		server.Resources.Limits = corev1.ResourceList{}
	}
	if server.Resources.Requests == nil {
		server.Resources.Requests = corev1.ResourceList{}
	}
	server.Resources.Limits[corev1.ResourceMemory], server.Resources.Requests[corev1.ResourceMemory] = limit, request
}

// OwnMemory is what the user's template says about the memory of the server's container: a
// list is nil where it says nothing. 0.0.2 did not read it.
func OwnMemory(mc *v1alpha1.Memcached, r Rendering) (own corev1.ResourceRequirements) {
	if mc.Spec.PodTemplate == nil || r.IsOf002 {
		return own
	}
	resources := podtemplate.Container(&mc.Spec.PodTemplate.Spec, ServerContainer).Resources
	if limit, ok := resources.Limits[corev1.ResourceMemory]; ok {
		own.Limits = corev1.ResourceList{corev1.ResourceMemory: limit}
	}
	if request, ok := resources.Requests[corev1.ResourceMemory]; ok {
		own.Requests = corev1.ResourceList{corev1.ResourceMemory: request}
	}
	return own
}

// growsWithConnections says whether a running server can be allowed more connections than
// its container has room for: it gets more first. A limit of the user's own stays.
func growsWithConnections(mc *v1alpha1.Memcached, r Rendering) bool {
	return IsWarm(mc) && !r.IsOf002 && OwnMemory(mc, r).Limits == nil
}

// inMebibytes is a memory as annotations have it.
func inMebibytes(q resource.Quantity) string { return strconv.FormatInt(q.Value()>>20, 10) }
