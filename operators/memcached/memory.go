package memcached

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/status"
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

// neededMemory is what a container needs to hold what the spec allows: a quarter more than
// the cache for what memcached keeps besides, 64Mi, and what further connections take. The
// memory file of a warm server counts as its container's.
func neededMemory(mc *v1alpha1.Memcached, r rendering) resource.Quantity {
	cache := mc.Spec.Memory.Value()
	bytes := cache + cache/4 + 64*mebi
	if further := int64(mc.Spec.MaxConnections) - connectionsIn64Mi; further > 0 && !r.isOf002 {
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
func setMemory(server *corev1.Container, mc *v1alpha1.Memcached, r rendering) {
	limit := neededMemory(mc, r)
	own := ownMemory(mc, r)
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

// ownMemory is what the user's template says about the memory of the server's container: a
// list is nil where it says nothing. 0.0.2 did not read it.
func ownMemory(mc *v1alpha1.Memcached, r rendering) (own corev1.ResourceRequirements) {
	if mc.Spec.PodTemplate == nil || r.isOf002 {
		return own
	}
	resources := podtemplate.Container(&mc.Spec.PodTemplate.Spec, serverContainer).Resources
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
func growsWithConnections(mc *v1alpha1.Memcached, r rendering) bool {
	return isWarm(mc) && !r.isOf002 && ownMemory(mc, r).Limits == nil
}

// inMebibytes is a memory as annotations have it.
func inMebibytes(q resource.Quantity) string { return strconv.FormatInt(q.Value()>>20, 10) }

// lowLimit reports a limit of the user's own that cannot hold what the spec allows: the
// kernel would end the servers, with their items, when clients use it.
func lowLimit(mc *v1alpha1.Memcached, t podTemplate) *status.Problem {
	needed, limit := neededMemory(mc, t.rendering), t.server().Resources.Limits[corev1.ResourceMemory]
	if limit.Cmp(needed) >= 0 {
		return nil
	}
	clients := "connections"
	if mc.Spec.TLS != nil {
		clients += " with TLS"
	}
	return &status.Problem{Reason: reasonLowLimit, Message: fmt.Sprintf(
		"spec.podTemplate limits container %q to %s of memory, which is too little for %s of items and %d %s: set limits.memory to %s or more, or leave it out. The servers stay as they are",
		serverContainer, limit.String(), mc.Spec.Memory.String(), mc.Spec.MaxConnections, clients, needed.String())}
}

// ignoredLimit says that servers as 0.0.2 made them do not have the limit of the user's own.
func ignoredLimit(mc *v1alpha1.Memcached, t podTemplate) string {
	own, limit := ownMemory(mc, renderings[0]).Limits, t.server().Resources.Limits[corev1.ResourceMemory]
	if !t.isOf002 || own == nil || limit.Cmp(own[corev1.ResourceMemory]) == 0 {
		return ""
	}
	return fmt.Sprintf(". The container of each server is limited to %s of memory, as an earlier version of the operator did it, and to the %s of spec.podTemplate from the next cold change on",
		limit.String(), own.Memory())
}
