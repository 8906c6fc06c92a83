package sim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The node ports that a cluster gives. Those that nobody requests come from the upper
// part, in order: a port that is free again is not given soon.
const (
	firstNodePort, lastNodePort = 30000, 32767
	firstGiven                  = 30100
)

// prepareService gives a Service its defaults, its addresses and its node ports.
func (s *Server) prepareService(old, service *corev1.Service) (errs field.ErrorList) {
	spec := &service.Spec
	or(&spec.Type, corev1.ServiceTypeClusterIP)
	or(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	hasIP, hasPorts := spec.Type != corev1.ServiceTypeExternalName, hasNodePorts(service)
	if hasIP && spec.InternalTrafficPolicy == nil {
		spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	}
	switch {
	case hasPorts:
		or(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	default:
		spec.ExternalTrafficPolicy = ""
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		or(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == (intstr.IntOrString{}) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if old != nil {
		keepAllocated(old, service)
	}
	path := field.NewPath("spec")
	if errs = checkPorts(spec.Ports, path.Child("ports")); len(errs) > 0 {
		return errs
	}
	switch {
	case !hasIP:
	case spec.ClusterIP == "":
		spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", s.ports>>8&0xff, s.ports&0xff)
		s.ports++
		fallthrough
	default:
		if len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
		if len(spec.IPFamilies) == 0 && spec.ClusterIP != corev1.ClusterIPNone {
			spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
		}
		if spec.IPFamilyPolicy == nil {
			spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
		}
		if old != nil && old.Spec.ClusterIP != "" && old.Spec.ClusterIP != spec.ClusterIP {
			errs = append(errs, field.Invalid(path.Child("clusterIPs").Index(0), spec.ClusterIPs, "may not change once set"))
		}
	}
	if hasPorts {
		return append(errs, s.allocate(service, path.Child("ports"))...)
	}
	return errs
}

func hasNodePorts(service *corev1.Service) bool {
	return service.Spec.Type == corev1.ServiceTypeNodePort || service.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// keepAllocated keeps what the API server has given earlier, where the new version of a
// Service leaves it out: addresses, and the node ports of ports with the same name.
func keepAllocated(old, service *corev1.Service) {
	if old.Spec.Type != corev1.ServiceTypeExternalName && service.Spec.Type != corev1.ServiceTypeExternalName {
		or(&service.Spec.ClusterIP, old.Spec.ClusterIP)
		if service.Spec.ClusterIP == old.Spec.ClusterIP && len(service.Spec.ClusterIPs) == 0 {
			service.Spec.ClusterIPs = old.Spec.ClusterIPs
		}
	}
	switch {
	case hasNodePorts(old) && hasNodePorts(service):
		byName, used := map[string]int32{}, map[int32]bool{}
		for _, p := range old.Spec.Ports {
			byName[p.Name] = p.NodePort
		}
		for _, p := range service.Spec.Ports {
			used[p.NodePort] = true
		}
		for i := range service.Spec.Ports {
			p := &service.Spec.Ports[i]
			if had := byName[p.Name]; p.NodePort == 0 && !used[had] {
				p.NodePort, used[had] = had, true
			}
		}
	case hasNodePorts(old) && !hasNodePorts(service):
		for i := range service.Spec.Ports {
			p := &service.Spec.Ports[i]
			for _, had := range old.Spec.Ports {
				if p.NodePort == had.NodePort {
					p.NodePort = 0
				}
			}
		}
	}
}

// checkPorts refuses ports that there are twice.
func checkPorts(ports []corev1.ServicePort, path *field.Path) (errs field.ErrorList) {
	type number struct {
		corev1.Protocol
		int32
	}
	names, numbers := map[string]bool{}, map[number]bool{}
	if len(ports) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	for i, p := range ports {
		switch {
		case p.Name == "" && len(ports) > 1:
			errs = append(errs, field.Required(path.Index(i).Child("name"), ""))
		case names[p.Name]:
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), p.Name))
		}
		if n := (number{p.Protocol, p.Port}); numbers[n] {
			errs = append(errs, field.Duplicate(path.Index(i), corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		}
		names[p.Name], numbers[number{p.Protocol, p.Port}] = true, true
	}
	return errs
}

// allocate gives node ports to the ports that have none, and refuses those that others have.
func (s *Server) allocate(service *corev1.Service, path *field.Path) (errs field.ErrorList) {
	taken := map[int32]bool{}
	Each(s, func(other *corev1.Service) {
		if other.Name == service.Name && other.Namespace == service.Namespace {
			return
		}
		for _, p := range other.Spec.Ports {
			taken[p.NodePort] = true
		}
	})
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		at := path.Index(i).Child("nodePort")
		switch {
		case p.NodePort == 0:
		case p.NodePort < firstNodePort || p.NodePort > lastNodePort:
			errs = append(errs, field.Invalid(at, p.NodePort, fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", firstNodePort, lastNodePort)))
		case taken[p.NodePort]:
			errs = append(errs, field.Invalid(at, p.NodePort, "provided port is already allocated"))
		}
		taken[p.NodePort] = true
	}
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		for p.NodePort == 0 {
			if port := firstGiven + s.ports%(lastNodePort-firstGiven); !taken[port] {
				p.NodePort, taken[port] = port, true
			}
			s.ports++
		}
	}
	return errs
}
