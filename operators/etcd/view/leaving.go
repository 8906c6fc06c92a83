package view

import (
	"fmt"
	"slices"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/pods"
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
	case m.isToBeReplaced():
		return "its pod has the annotation " + annotation.Replace
	case v.IsFixed && v.Nodes[m.Pod.Spec.NodeName].IsCordoned:
		return fmt.Sprintf("its node %s is cordoned", m.Pod.Spec.NodeName)
	}
	return ""
}

// isToBeReplaced says that the user has a member replaced, by the annotation on its pod.
func (m *Member) isToBeReplaced() bool {
	return m.Pod != nil && m.Pod.Annotations[annotation.Replace] == "true"
}

// NextToLeave is the voter that is the next to leave, the one that clients miss least: one that Kubernetes does not have as
// ready, and one that does not lead; nil if none is leaving. While nobody else may join or leave, nobody is.
func (v *View) NextToLeave(ec *v1beta2.EtcdCluster) *Member {
	if ec.Status.Restoring != nil || v.Downgrading() != "" {
		return nil
	}
	missed := func(m *Member) (much int) {
		if m.ID == v.Leader {
			much += 2
		}
		if pods.IsReady(m.Pod) {
			much++
		}
		return much
	}
	var next *Member
	for _, m := range v.Members {
		if m.Leaving != "" && m.IsVoter() && (next == nil || missed(m) < missed(next)) {
			next = m
		}
	}
	return next
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

// LeastAvailable is how many pods evictions have to leave. For minutes Kubernetes counts a pod as healthy whose node, or
// etcd, does not answer, and lets another one go in its place: as many fewer may go as there are of these.
func (v *View) LeastAvailable(ec *v1beta2.EtcdCluster) int {
	all := len(v.Members)
	voters := max(v.voters(), int(ec.Spec.Size))
	unnoticed := v.Count(func(m *Member) bool { return m.isDown() && pods.IsReady(m.Pod) })
	switch {
	case ec.Status.ClusterID == "" && objects.HasVolumes(ec): // there is nothing to serve yet, and what there is stays
		return 0
	case v.IsFixed:
		return v.leastOfFixed(ec, max(all, int(ec.Spec.Size)))
	case v.voters() < all: // a learner counts as available for Kubernetes, and is no voter: nobody may be evicted
		voters = 2*all - 1
	}
	return voters - max(objects.Evictable(ec, voters)-unnoticed, 0)
}

// HeldBack is a pod that does not serve, and for which a drain of its node waits, as evictions have to leave more pods than
// are ready; nil if there is none.
func (v *View) HeldBack(ec *v1beta2.EtcdCluster) *Member {
	if !objects.HasBudget(ec) || v.ready() >= v.LeastAvailable(ec) {
		return nil
	}
	i := slices.IndexFunc(v.Present, func(m *Member) bool {
		return m.isOnCordoned(v) && !pods.IsReady(m.Pod) && !m.Follows
	})
	if i < 0 {
		return nil
	}
	return v.Present[i]
}

// WaitsFor is a member that serves, and that a drain of its node does not get, because another one does not serve, and that
// one; nil if there is none. What will serve in a moment is not waited for: evictions of one after the other are like that.
func (v *View) WaitsFor(ec *v1beta2.EtcdCluster) (held, down *Member) {
	down = v.Find(func(m *Member) bool {
		return m.isDown() && !m.Problem.IsStarting && !m.IsLost() && (!objects.IsEnding(m.Pod) || pods.OnSilentNodes(*m.Pod) != "")
	})
	if down == nil || !objects.HasBudget(ec) || v.ready() > v.LeastAvailable(ec) {
		return nil, nil
	}
	return v.Find(func(m *Member) bool { return m.isOnCordoned(v) && m.Follows }), down
}

// ready counts the pods that are ready, as Kubernetes sees it.
func (v *View) ready() int {
	n := 0
	for _, m := range v.Present {
		if m.Pod != nil && pods.IsReady(m.Pod) {
			n++
		}
	}
	return n
}

// isOnCordoned says that a member's pod is on a node that is cordoned, and not ending.
func (m *Member) isOnCordoned(v *View) bool {
	return m.Pod != nil && !objects.IsEnding(m.Pod) && v.Nodes[m.Pod.Spec.NodeName].IsCordoned
}

// isDown says that a member has a pod, and does not serve, as far as is known.
func (m *Member) isDown() bool { return m.Pod != nil && !m.Follows && !m.MayFollow }

// leastOfFixed is all pods, also those of members that have left. But one that is leaving and does not serve
// cannot be replaced before it leaves, as nobody can join until it serves: it may go alone, once Kubernetes has noticed
// that it does not serve. Until then a lower number would let any of the others go.
func (v *View) leastOfFixed(ec *v1beta2.EtcdCluster, all int) int {
	if v.Find(func(m *Member) bool { return m.Leaving != "" && m.isDown() && !pods.IsReady(m.Pod) }) != nil {
		return all - min(objects.Evictable(ec, all), 1)
	}
	for _, m := range v.Strays {
		if m.Pod != nil {
			all++
		}
	}
	return all
}
