// Package network compares the NetworkPolicies of operators/*/config/network with what was seen to connect, because
// nothing in the local cluster enforces them: they let every connection pass, and none of their rules is without one that
// needs it.
package network

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// end is one end of a connection.
type end struct {
	// name is the pod's, or says what else it is.
	name string
	// namespace is empty for what is no pod.
	namespace string
	labels    labels.Set
	// ports have names.
	ports map[string]int32
	// isNode is for the node, with its kubelet and its NodePorts: its connections to pods always pass.
	isNode bool
}

// connection is from a client to the port of a server.
type connection struct {
	from, to end
	protocol corev1.Protocol
	port     int32
}

func (c connection) String() string {
	return fmt.Sprintf("%s/%s to %s/%s, %s %d", c.from.namespace, c.from.name, c.to.namespace, c.to.name, c.protocol, c.port)
}

// allows says whether policies let a connection pass, at both ends.
func allows(policies []networkingv1.NetworkPolicy, c connection) bool {
	return passes(policies, c, networkingv1.PolicyTypeEgress, c.from, c.to) &&
		(c.from.isNode || passes(policies, c, networkingv1.PolicyTypeIngress, c.to, c.from))
}

// passes is about one end of a connection: some rule has to let it pass as soon as one policy selects the pod.
func passes(policies []networkingv1.NetworkPolicy, c connection, direction networkingv1.PolicyType, pod, peer end) bool {
	isSelected := false
	for _, policy := range policies {
		if policy.Namespace != pod.namespace || !slices.Contains(policy.Spec.PolicyTypes, direction) ||
			!selects(&policy.Spec.PodSelector, pod.labels) {
			continue
		}
		isSelected = true
		for _, r := range rulesOf(&policy, direction) {
			if r.allows(c, policy.Namespace, peer) {
				return true
			}
		}
	}
	return !isSelected
}

// rule is one of either direction. As in Kubernetes, an empty list is no limit.
type rule struct {
	peers *[]networkingv1.NetworkPolicyPeer
	ports *[]networkingv1.NetworkPolicyPort
}

func rulesOf(policy *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) []rule {
	var rules []rule
	if direction == networkingv1.PolicyTypeIngress {
		for i := range policy.Spec.Ingress {
			rules = append(rules, rule{&policy.Spec.Ingress[i].From, &policy.Spec.Ingress[i].Ports})
		}
		return rules
	}
	for i := range policy.Spec.Egress {
		rules = append(rules, rule{&policy.Spec.Egress[i].To, &policy.Spec.Egress[i].Ports})
	}
	return rules
}

func (r rule) allows(c connection, namespace string, peer end) bool {
	isPeer := func(p networkingv1.NetworkPolicyPeer) bool {
		switch {
		case peer.namespace == "" || p.IPBlock != nil: // none of the policies has one
			return false
		case p.NamespaceSelector == nil:
			return peer.namespace == namespace && selects(p.PodSelector, peer.labels)
		}
		return selects(p.NamespaceSelector, labels.Set{corev1.LabelMetadataName: peer.namespace}) &&
			(p.PodSelector == nil || selects(p.PodSelector, peer.labels))
	}
	isPort := func(p networkingv1.NetworkPolicyPort) bool {
		number := p.Port.IntVal
		if p.Port.Type == intstr.String {
			number = c.to.ports[p.Port.StrVal]
		}
		return protocolOf(p) == c.protocol && number == c.port
	}
	return (len(*r.peers) == 0 || slices.ContainsFunc(*r.peers, isPeer)) && (len(*r.ports) == 0 || slices.ContainsFunc(*r.ports, isPort))
}

func protocolOf(p networkingv1.NetworkPolicyPort) corev1.Protocol {
	if p.Protocol == nil {
		return corev1.ProtocolTCP
	}
	return *p.Protocol
}

func selects(selector *metav1.LabelSelector, of labels.Set) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(of)
}

// compare says which connections the policies refuse, and what of the policies none of the others needs.
func compare(policies []networkingv1.NetworkPolicy, seen []connection) (refused []connection, unneeded []string) {
	var allowed []connection
	for _, c := range seen {
		if allows(policies, c) {
			allowed = append(allowed, c)
		} else {
			refused = append(refused, c)
		}
	}
	for _, less := range lessened(policies) {
		if !slices.ContainsFunc(allowed, func(c connection) bool { return !allows(less.policies, c) }) {
			unneeded = append(unneeded, less.without)
		}
	}
	return refused, unneeded
}

// lesser are policies without one thing that they allow, and what that is.
type lesser struct {
	without  string
	policies []networkingv1.NetworkPolicy
}

// lessened takes each thing away in turn: a peer or a port of a rule that has several, or else the rule.
func lessened(policies []networkingv1.NetworkPolicy) []lesser {
	var all []lesser
	for i := range policies {
		for _, direction := range []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress} {
			for j, r := range rulesOf(&policies[i], direction) {
				add := func(part string, remove func(*networkingv1.NetworkPolicySpec, rule)) {
					less := slices.Clone(policies)
					less[i] = *policies[i].DeepCopy()
					remove(&less[i].Spec, rulesOf(&less[i], direction)[j])
					all = append(all, lesser{fmt.Sprintf("%s %s[%d]%s", policies[i].Name, direction, j, part), less})
				}
				for k := range *r.peers {
					if len(*r.peers) > 1 {
						add(fmt.Sprintf(" peer %d", k), func(_ *networkingv1.NetworkPolicySpec, r rule) {
							*r.peers = slices.Delete(*r.peers, k, k+1)
						})
					}
				}
				for k, p := range *r.ports {
					if len(*r.ports) > 1 {
						add(fmt.Sprintf(" port %s/%s", protocolOf(p), p.Port), func(_ *networkingv1.NetworkPolicySpec, r rule) {
							*r.ports = slices.Delete(*r.ports, k, k+1)
						})
					}
				}
				if len(*r.peers) < 2 && len(*r.ports) < 2 {
					add("", func(spec *networkingv1.NetworkPolicySpec, _ rule) {
						if direction == networkingv1.PolicyTypeIngress {
							spec.Ingress = slices.Delete(spec.Ingress, j, j+1)
						} else {
							spec.Egress = slices.Delete(spec.Egress, j, j+1)
						}
					})
				}
			}
		}
	}
	return all
}
