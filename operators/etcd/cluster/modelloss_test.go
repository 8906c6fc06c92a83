package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
)

// This file has nodes that lose their power, and members that are cut off. Nobody's word is needed for anything else: so no
// member may be removed, and no pod deleted, until the user has deleted the Node.

const (
	// silentAfter is when the pods of a node that does not answer are marked, and evictedAfter when they are deleted: what
	// Kubernetes takes for both.
	silentAfter  = 50 * time.Second
	evictedAfter = silentAfter + 5*time.Minute
)

func lossTales() []tale {
	return []tale{
		{name: "node-lost", nodes: 4, steps: []testkit.Step{powerOff, {Name: "deletes the Node", When: oneIsSilent, Do: deleteNode}}, settled: replacedByHand},
		{name: "node-lost-with-volumes", nodes: 4, spec: []ecOption{stored}, steps: []testkit.Step{
			powerOff, {Name: "deletes the Node", When: oneIsSilent, Do: deleteNode},
		}},
		{name: "node-silent", nodes: 4, steps: []testkit.Step{powerOff}, settled: evictedAndKept},
		{name: "node-back", nodes: 4, spec: []ecOption{stored}, steps: []testkit.Step{powerOff, {Name: "switches it on", When: oneIsSilent, Do: powerOn}}, settled: kept},
		{name: "member-cut-off", nodes: 3, steps: []testkit.Step{
			{Name: "cuts the first member off", When: ready, Do: cutOff(true)}, {Name: "heals the network", When: oneIsDown, Do: cutOff(false)},
		}, settled: kept},
	}
}

// powerOff switches the first node off that has a member.
var powerOff = testkit.Step{Name: "switches a node off", When: ready, Do: func(_ context.Context, r *testkit.Run) error {
	n, first := r.Own.(*modelNodes), ""
	sim.Each(n.world.Server, func(pod *corev1.Pod) { first = cmp.Or(first, pod.Spec.NodeName) })
	if first == "" {
		return errors.New("no node has a member")
	}
	n.stop(first, (*modelNodes).kill)
	return nil
}}

// stop has a node not answer any more, and does that to what runs on it.
func (n *modelNodes) stop(node string, how func(*modelNodes, *modelPod)) {
	n.off, n.offSince = node, n.world.Now()
	n.on(node, func(p *modelPod) { how(n, p) })
}

func (n *modelNodes) kill(p *modelPod) {
	n.model.Kill(p.name)
	p.runs = false
}

// on does something to what runs on a node.
func (n *modelNodes) on(node string, do func(*modelPod)) {
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		if p := n.pods[pod.UID]; p != nil && pod.Spec.NodeName == node {
			do(p)
		}
	})
	n.world.Changed()
}

// powerOn has the kubelet start what it had, unless it only stood still, and end what was deleted meanwhile.
func powerOn(_ context.Context, r *testkit.Run) error {
	n := r.Own.(*modelNodes)
	n.on(n.off, func(p *modelPod) { n.model.Resume(p.name) })
	n.off = ""
	return nil
}

func deleteNode(ctx context.Context, r *testkit.Run) error {
	return r.Client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.Own.(*modelNodes).off}})
}

// isSilent says whether a member is on a node that is off, or is cut off.
func (n *modelNodes) isSilent(member string) (is bool) {
	sim.Each(n.world.Server, func(pod *corev1.Pod) { is = is || pod.Name == member && n.off != "" && pod.Spec.NodeName == n.off })
	return is || n.cut != "" && member == n.cut
}

// mustStay says that a member is only not reached, and that no user wants another one in its place.
func (n *modelNodes) mustStay(member string) bool {
	isLeaving := false
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		node, isThere := sim.Find[*corev1.Node](n.world.Server, types.NamespacedName{Name: pod.Spec.NodeName})
		isLeaving = isLeaving || pod.Name == member && isThere && node.Spec.Unschedulable
	})
	return n.isSilent(member) && !isLeaving
}

// unattended is what becomes of a pod on a node that is off.
func (n *modelNodes) unattended(pod *corev1.Pod, p *modelPod) (did bool, wake time.Time) {
	_, isThere := sim.Find[*corev1.Node](n.world.Server, types.NamespacedName{Name: n.off})
	silent, evicted := n.offSince.Add(silentAfter), n.offSince.Add(evictedAfter)
	switch {
	case !isThere:
		n.forget(p)
		delete(n.pods, pod.UID)
		n.givenUp = append(n.givenUp, pod.Name)
		n.world.Fail(n.world.Server.Remove(pod, "pod garbage collector"))
		n.world.Changed()
	case n.world.Now().Before(silent):
		return false, silent
	case pods.IsReady(pod):
		n.mark(pod, corev1.ConditionTrue, corev1.ConditionFalse, "node lifecycle controller")
	case n.world.Now().Before(evicted):
		return false, evicted
	case pod.DeletionTimestamp == nil:
		n.world.Fail(n.world.Server.Delete(pod, "taint eviction controller"))
	default:
		return false, wake // its kubelet does not answer
	}
	return true, wake
}

// mark stores whether the containers of a pod are ready, and whether the pod is.
func (n *modelNodes) mark(pod *corev1.Pod, containers, ready corev1.ConditionStatus, by string) {
	marked := pod.DeepCopy()
	n.world.Server.SetPodCondition(&marked.Status, corev1.ContainersReady, containers, "")
	n.world.Server.SetPodCondition(&marked.Status, corev1.PodReady, ready, "")
	n.world.Fail(n.world.Server.Report(marked, by))
}

// cutOff cuts the first member off from the others and from clients, or heals that.
func cutOff(is bool) func(context.Context, *testkit.Run) error {
	return func(_ context.Context, r *testkit.Run) error {
		n := r.Own.(*modelNodes)
		if is {
			n.cut = n.inOrder()[0].name
		}
		n.model.Unreachable(n.cut, is, is)
		if !is {
			n.cut = ""
		}
		n.world.Changed()
		return nil
	}
}

// oneIsSilent is nil when status says that a node does not answer.
func oneIsSilent(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err == nil && !slices.ContainsFunc(ec.Status.MemberList, func(m v1beta2.MemberStatus) bool { return strings.Contains(m.Problem, "has not answered since") }) {
		err = fmt.Errorf("no node is said not to answer: %s", inShort(ec))
	}
	return err
}

// sameMembers is nil when no member was ever added but the first.
func sameMembers(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err == nil && ec.Status.MemberNamesUsed != int64(ec.Spec.Size) {
		err = fmt.Errorf("there were %d members: %s", ec.Status.MemberNamesUsed, inShort(ec))
	}
	return err
}

// kept is nil when the cluster is as its spec requests, with its first members.
func kept(ctx context.Context, r *testkit.Run) error {
	return errors.Join(sameMembers(ctx, r), ready(ctx, r))
}

// evictedAndKept is nil when the pods of the node that is off are marked for deletion, and the others serve.
func evictedAndKept(ctx context.Context, r *testkit.Run) error {
	all, err := podsOf(ctx, r)
	for _, pod := range all {
		if pod.Spec.NodeName == r.Own.(*modelNodes).off && pod.DeletionTimestamp == nil {
			err = errors.Join(err, fmt.Errorf("%s is not to be deleted", pod.Name))
		}
	}
	return errors.Join(err, sameMembers(ctx, r), oneIsSilent(ctx, r), own(r).put(r))
}
