package view

import (
	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/objects"
)

// This file says which members share a node. Nothing moves them apart again: the scheduler looks only when it places a pod.

// Sharing are the members of each node that has more than one.
func (v *View) Sharing() map[string][]*Member {
	on := map[string][]*Member{}
	for _, m := range v.Members {
		if m.Pod != nil && m.Pod.Spec.NodeName != "" {
			on[m.Pod.Spec.NodeName] = append(on[m.Pod.Spec.NodeName], m)
		}
	}
	for node, there := range on {
		if len(there) == 1 {
			delete(on, node)
		}
	}
	return on
}

// Crowded are members that share a node which takes the quorum along if it is lost, although one of them could be on another
// one; none if there is no such node, or the user says where members are to be. Where nodes are not seen, there may be
// another one if members are on more than one: what has but one node is meant to be so.
func (v *View) Crowded(ec *v1beta2.EtcdCluster) []*Member {
	if !objects.SpreadsItself(ec) || v.Nodes != nil && !v.HasPlace {
		return nil
	}
	sharing := v.Sharing()
	for _, node := range sortedKeys(sharing) {
		there := sharing[node]
		isElsewhere := v.Find(func(m *Member) bool { return m.Pod != nil && m.Pod.Spec.NodeName != node }) != nil
		if voters := v.voters(); voters-len(there) < objects.Majority(voters) && (v.Nodes != nil || isElsewhere) {
			return there
		}
	}
	return nil
}
