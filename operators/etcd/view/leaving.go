package view

import (
	"fmt"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
)

// This file says which members are leaving, and what a drain may take meanwhile: where members cannot take their data to
// another node, the operator moves them off one that takes no more pods, and nobody else may evict them.

// whyLeaving says why another member is to take the place of one; empty if none is.
func (v *View) whyLeaving(m *Member) string {
	switch {
	case m.Pod == nil || objects.IsEnding(m.Pod):
		return ""
	case m.Pod.Annotations[annotation.Replace] == "true":
		return "its pod has the annotation " + annotation.Replace
	case v.IsFixed && v.Nodes[m.Pod.Spec.NodeName].IsCordoned:
		return fmt.Sprintf("its node %s is cordoned", m.Pod.Spec.NodeName)
	}
	return ""
}

// NextToLeave is the voter that is the next to leave, one that does not lead if there is such; nil if none is leaving.
// While nobody else may join or leave, nobody is.
func (v *View) NextToLeave(ec *v1beta2.EtcdCluster) *Member {
	if ec.Status.Restoring != nil || v.Downgrading() != "" {
		return nil
	}
	is := func(m *Member) bool { return m.Leaving != "" && m.IsVoter() }
	if other := v.Find(func(m *Member) bool { return is(m) && m.ID != v.Leader }); other != nil {
		return other
	}
	return v.Find(is)
}

// Requested is how many members there are to be: one more than the spec requests while one is leaving, as another takes
// its place before.
func (v *View) Requested(ec *v1beta2.EtcdCluster) int {
	if v.NextToLeave(ec) != nil {
		return int(ec.Spec.Size) + 1
	}
	return int(ec.Spec.Size)
}

// Zone is that of a member's node; empty if it is not known.
func (v *View) Zone(m *Member) string {
	if m.Pod == nil {
		return ""
	}
	return v.Nodes[m.Pod.Spec.NodeName].Zone
}

// LeastAvailable is how many pods evictions have to leave.
func (v *View) LeastAvailable(ec *v1beta2.EtcdCluster) int {
	all := len(v.Members)
	voters := max(v.voters(), int(ec.Spec.Size))
	switch {
	case v.IsFixed:
		return v.leastOfFixed(ec, max(all, int(ec.Spec.Size)))
	case v.voters() < all: // a learner counts as available for Kubernetes, and is no voter: nobody may be evicted
		voters = 2*all - 1
	}
	return voters - objects.Evictable(ec, voters)
}

// leastOfFixed is all pods, also those of members that have left. But one that is leaving and does not serve
// cannot be replaced before it leaves, as nobody can join until it serves: it may go alone.
func (v *View) leastOfFixed(ec *v1beta2.EtcdCluster, all int) int {
	if v.Find(func(m *Member) bool { return m.Leaving != "" && !m.Follows && !m.MayFollow }) != nil {
		return all - min(objects.Evictable(ec, all), 1)
	}
	for _, m := range v.Strays {
		if m.Pod != nil {
			all++
		}
	}
	return all
}
