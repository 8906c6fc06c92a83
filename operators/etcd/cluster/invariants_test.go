package cluster

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/etcd/members"
)

// never returns what must never be so after a change of the cluster: that an operator has taken
// away a member that the others cannot do without, or the last copy of what was acknowledged.
// Once the user has accepted the loss of data, both may be.
func never(c sim.Change, r *testkit.Run) error {
	n := r.Own.(*modelNodes)
	if !strings.HasPrefix(c.By, "operator") || n.hasAccepted() {
		return nil
	}
	switch now := c.New.(type) {
	case *corev1.Pod:
		old, _ := c.Old.(*corev1.Pod)
		isEnd := old != nil && old.DeletionTimestamp == nil && (now.DeletionTimestamp != nil || c.Type == watch.Deleted)
		isRestart := old != nil && imageIn(old) != imageIn(now)
		if isEnd || isRestart {
			return n.canDoWithout(now)
		}
	case *corev1.PersistentVolumeClaim:
		if disk := n.disks[now.UID]; disk != nil && (now.DeletionTimestamp != nil || c.Type == watch.Deleted) {
			return n.isCopied(now)
		}
	}
	return nil
}

// hasAccepted says whether the user has ever accepted a loss of data.
func (n *modelNodes) hasAccepted() bool {
	accepted := false
	sim.Each(n.world.Server, func(ec *v1beta2.EtcdCluster) { accepted = accepted || ec.Spec.AcceptDataLoss != "" })
	return accepted
}

// canDoWithout returns an error if a pod's member is one of a quorum that is none without it.
func (n *modelNodes) canDoWithout(pod *corev1.Pod) error {
	p := n.pods[pod.UID]
	if p == nil || !p.runs {
		return nil
	}
	c, _ := n.model.Connect(nil)
	status := func(p *modelPod) (members.Status, members.List) {
		s, err := c.Status(context.Background(), members.Endpoint{Address: p.ip + ":2379"})
		if err != nil {
			return members.Status{}, members.List{}
		}
		list, _ := c.List(context.Background(), members.Endpoint{Address: p.ip + ":2379"})
		return s, list
	}
	mine, list := status(p)
	if mine.Leader == 0 || len(list.Members) == 1 {
		return nil // there is no quorum to lose, or it is the whole cluster
	}
	voters, following := 0, 0
	isVoter := map[members.ID]bool{}
	for _, m := range list.Members {
		if !m.IsLearner {
			voters++
			isVoter[m.ID] = true
		}
	}
	for _, other := range n.pods {
		if other == p || !other.runs {
			continue
		}
		if s, _ := status(other); s.Leader == mine.Leader && isVoter[s.ID] {
			following++
		}
	}
	if isVoter[mine.ID] && following+1 >= majority(voters) && following < majority(voters) {
		return fmt.Errorf("the operator takes %s away, without which %d of %d voters are left", pod.Name, following, voters)
	}
	return nil
}

// isCopied returns an error if no other disk has what was acknowledged.
func (n *modelNodes) isCopied(claim *corev1.PersistentVolumeClaim) error {
	for _, write := range n.model.Acknowledged() {
		isElsewhere := false
		for _, disk := range n.model.Holders(write) {
			isElsewhere = isElsewhere || disk != n.disks[claim.UID]
		}
		if !isElsewhere {
			return fmt.Errorf("the operator deletes volume %s, which has the last copy of a write that was acknowledged", claim.Name)
		}
	}
	return nil
}
