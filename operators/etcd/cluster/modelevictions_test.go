package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
)

// This file has how Kubernetes drains nodes: the disruption controller, the eviction API, and kubectl drain. They are there
// only in the stories that need them.

const (
	evictionAPI = "eviction API"
	// retriesAfter is when kubectl drain tries to evict a pod again.
	retriesAfter = 5 * time.Second
)

// before starts what drains nodes.
func (t tale) before(_ context.Context, r *testkit.Run) error {
	if n, isModel := r.Own.(*modelNodes); isModel && t.drains {
		n.world.Controllers = append(n.world.Controllers, &disruptions{n}, &drainer{nodes: n})
	}
	return nil
}

// disruptions is the disruption controller. A pod that may be evicted is deleted at once here, so it remembers none.
type disruptions struct{ nodes *modelNodes }

func (*disruptions) Name() string { return "disruption controller" }

// Act writes the status of the first PodDisruptionBudget of which it is out of date.
func (d *disruptions) Act() (did bool, wake time.Time) {
	n := d.nodes
	sim.Each(n.world.Server, func(b *policyv1.PodDisruptionBudget) {
		told := b.DeepCopy()
		told.Status.ObservedGeneration, told.Status.DesiredHealthy = b.Generation, b.Spec.MinAvailable.IntVal
		told.Status.ExpectedPods, told.Status.CurrentHealthy = n.healthy(b)
		told.Status.DisruptionsAllowed = max(0, told.Status.CurrentHealthy-told.Status.DesiredHealthy)
		if told.Status.ExpectedPods == 0 {
			told.Status.DisruptionsAllowed = 0
		}
		if !did && !equality.Semantic.DeepEqual(told.Status, b.Status) {
			n.world.Fail(n.world.Server.Replace(told, d.Name()))
			did = true
		}
	})
	return did, wake
}

// healthy counts the pods that a budget is for, and those of them that are ready.
func (n *modelNodes) healthy(b *policyv1.PodDisruptionBudget) (expected, healthy int32) {
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		if !isOf(b, pod) {
			return
		}
		expected++
		if pod.DeletionTimestamp == nil && pods.IsReady(pod) {
			healthy++
		}
	})
	return expected, healthy
}

func isOf(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	return b.Namespace == pod.Namespace && labels.SelectorFromSet(b.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels))
}

// drainer is kubectl drain, for all nodes that are being drained.
type drainer struct {
	nodes *modelNodes
	next  time.Time
}

func (*drainer) Name() string { return "kubectl drain" }

// Act evicts the first pod that may be, and tries again later as long as there is one on those nodes.
func (d *drainer) Act() (did bool, wake time.Time) {
	n, isOver := d.nodes, true
	if n.world.Now().Before(d.next) {
		return false, d.next
	}
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		if slices.Contains(n.drained, pod.Spec.NodeName) {
			isOver, did = false, did || n.evict(pod)
		}
	})
	if did || isOver {
		return did, wake
	}
	d.next = n.world.Now().Add(retriesAfter)
	return false, d.next
}

// evict evicts a pod if the eviction API allows it, which decides as in pkg/registry/core/pod/storage/eviction.go of
// Kubernetes: that a budget's status is of its newest generation counts for pods that are ready only. Kubernetes also lets a
// pod go that has just become unready, and is still counted: for milliseconds, until the disruption controller has written
// the status. That takes the data of a cluster of one or two without volumes, and is left out here: nothing that an operator
// can write prevents it but a minAvailable above the number of pods, which sets off the alerts that people have for budgets.
func (n *modelNodes) evict(pod *corev1.Pod) bool {
	var budget *policyv1.PodDisruptionBudget
	sim.Each(n.world.Server, func(b *policyv1.PodDisruptionBudget) {
		if isOf(b, pod) {
			budget = b
		}
	})
	healthy := int32(0)
	if budget != nil {
		_, healthy = n.healthy(budget)
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return false
	case budget == nil || pod.Status.Phase != corev1.PodRunning:
	case !pods.IsReady(pod) && budget.Spec.UnhealthyPodEvictionPolicy != nil && *budget.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow:
	case !pods.IsReady(pod) && min(healthy, budget.Status.CurrentHealthy) >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0:
	case budget.Status.ObservedGeneration < budget.Generation || budget.Status.DisruptionsAllowed == 0:
		return false
	default:
		taken := budget.DeepCopy()
		taken.Status.DisruptionsAllowed--
		n.world.Fail(n.world.Server.Replace(taken, evictionAPI))
	}
	n.givenUp = append(n.givenUp, pod.Name)
	n.world.Tracef(evictionAPI, "evicts %s", pod.Name)
	n.world.Fail(n.world.Server.Delete(pod, evictionAPI))
	return true
}

// outlives returns an error if an eviction takes what the other voters cannot do without: a voter that serves, of whom too few
// are left, or the data of one. What a node has that is off may come back with it.
func (n *modelNodes) outlives(evicted *corev1.Pod) error {
	its := n.pods[evicted.UID]
	if its == nil {
		return nil
	}
	voters := n.voters(its)
	if !voters[its.disk.Member()] {
		return nil
	}
	serve, have := 0, 0
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		p := n.pods[pod.UID]
		if p == nil || p == its || pod.DeletionTimestamp != nil || p.disk.Cluster() != its.disk.Cluster() || !voters[p.disk.Member()] {
			return
		}
		have++
		if n.canServe(p) {
			serve++
		}
	})
	needed := objects.Majority(len(voters))
	switch {
	case n.canServe(its) && serve+1 == needed:
		return fmt.Errorf("%s is evicted, without which %d of %d voters serve", evicted.Name, serve, len(voters))
	case its.claim == "" && have+1 == needed:
		return fmt.Errorf("%s is evicted, without which %d of %d voters have their data", evicted.Name, have, len(voters))
	}
	return nil
}

// canServe says that a member's etcd runs, and others reach it, whether it has a leader or not.
func (n *modelNodes) canServe(p *modelPod) bool {
	return p.runs && p.hung.IsZero() && !n.isSilent(p.name)
}

// voters are those of the cluster that a member is of, as its leader has them or, while nobody leads, one that runs.
func (n *modelNodes) voters(of *modelPod) map[members.ID]bool {
	latest := of.disk
	for _, p := range n.inOrder() {
		if p.disk.Cluster() == of.disk.Cluster() && n.canServe(p) {
			latest = p.disk
		}
	}
	for _, leading := range n.model.Leading() {
		if leading.Cluster() == of.disk.Cluster() {
			latest = leading
		}
	}
	voters := map[members.ID]bool{}
	for _, m := range latest.Members() {
		if !m.IsLearner {
			voters[m.ID] = true
		}
	}
	return voters
}
