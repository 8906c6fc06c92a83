package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
)

// shares has members be on nodes of their own, but for these, which share one. Nodes are not seen.
func (w *world) shares(numbers ...int64) *world {
	w.cordons().seen.Nodes = nil
	w.movable()
	for _, n := range numbers {
		w.seen.Pods[w.name(n)].Spec.NodeName = "shared"
	}
	return w
}

// seesNodes has nodes be seen, one of which has a place for another member, or none.
func (w *world) seesNodes(hasPlace bool) *world {
	w.cordons().seen.HasPlace = hasPlace
	return w
}

// TestCrowded: where members share a node that takes the quorum along, and need not, Ready says so, and what helps.
func TestCrowded(t *testing.T) {
	pinned := func(change func(*v1beta2.PodPolicy)) ecOption {
		return func(ec *v1beta2.EtcdCluster) {
			ec.Spec.Pod = &v1beta2.PodPolicy{}
			change(ec.Spec.Pod)
		}
	}
	const helps = ", and to lose that is to lose the quorum: when another node has room, kubectl annotate pod "
	for name, tc := range map[string]struct {
		world *world
		want  string
	}{
		"each has its own":       {healthy(anEtcd(), 1, 2, 3).cordons(), ""},
		"all on the only node":   {healthy(anEtcd(), 1, 2, 3), ""},
		"two of three":           {healthy(anEtcd(), 1, 2, 3).shares(2, 3), "; members #2 and #3 share node shared" + helps + "#2 etcd.database.coreos.com/replace=true"},
		"the leader is one":      {healthy(anEtcd(), 1, 2, 3).shares(1, 3), "; members #1 and #3 share node shared" + helps + "#3 etcd.database.coreos.com/replace=true"},
		"two of five":            {healthy(anEtcd(size(5)), 1, 2, 3, 4, 5).shares(2, 3), ""},
		"three of five":          {healthy(anEtcd(size(5)), 1, 2, 3, 4, 5).shares(2, 3, 4), "; members #2 and #4 and #3 share node shared" + helps + "#2 etcd.database.coreos.com/replace=true"},
		"one of one":             {healthy(anEtcd(alone), 1), ""},
		"no node has a place":    {healthy(anEtcd(), 1, 2, 3).seesNodes(false).moves("shared", 2, 3), ""},
		"a node has a place":     {healthy(anEtcd(), 1, 2, 3).seesNodes(true).moves("shared", 2, 3), "; members #2 and #3 share node shared" + helps + "#2 etcd.database.coreos.com/replace=true"},
		"the user wants them so": {healthy(anEtcd(pinned(func(p *v1beta2.PodPolicy) { p.Affinity = &corev1.Affinity{} })), 1, 2, 3).shares(2, 3), ""},
		"the user spreads them": {healthy(anEtcd(pinned(func(p *v1beta2.PodPolicy) {
			p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
		})), 1, 2, 3).shares(2, 3), ""},
		"the user says other things": {healthy(anEtcd(pinned(func(p *v1beta2.PodPolicy) { p.PriorityClassName = "high" })), 1, 2, 3).shares(2, 3),
			"; members #2 and #3 share node shared" + helps + "#2 etcd.database.coreos.com/replace=true"},
	} {
		t.Run(name, func(t *testing.T) {
			ready := meta.FindStatusCondition(tc.world.observed(t).Status.Conditions, status.Ready)
			_, got, _ := strings.Cut(tc.world.numbered(ready.Message), " members serve")
			if ready.Status != metav1.ConditionTrue || got != tc.want {
				t.Errorf("Ready is %s and says %q, want %q", ready.Status, got, tc.want)
			}
		})
	}
}

// moves has members be on another node.
func (w *world) moves(node string, numbers ...int64) *world {
	for _, n := range numbers {
		w.seen.Pods[w.name(n)].Spec.NodeName = node
	}
	return w
}

// TestTakesPods: which nodes have a place for a member.
func TestTakesPods(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"ready":     {func(*corev1.Node) {}, true},
		"cordoned":  {func(n *corev1.Node) { n.Spec.Unschedulable = true }, false},
		"not ready": {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, false},
		"the control plane": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
		}, false},
		"not preferred": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "slow", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, true},
		"of Windows":      {func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" }, false},
		"of another pool": {func(n *corev1.Node) { delete(n.Labels, "pool") }, false},
	} {
		ec := anEtcd()
		ec.Spec.Pod = &v1beta2.PodPolicy{NodeSelector: map[string]string{"pool": "etcd"}}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "etcd", corev1.LabelOSStable: "linux"}}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		tc.change(node)
		if got := takesPods(ec, node); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
