package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/model"
	"example.com/fairlead/operators/etcd/objects"
)

// isServed says whether a Service leads to the member with that data.
func (n *modelNodes) isServed(disk *model.Disk) bool {
	found := false
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		p := n.pods[pod.UID]
		found = found || p != nil && p.disk == disk && isServed(pod)
	})
	return found
}

// areOfOne returns an error if the Services lead to members of two clusters that run.
func (n *modelNodes) areOfOne() error {
	var first *model.Disk
	var err error
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		p := n.pods[pod.UID]
		switch {
		case p == nil || !p.runs || !isServed(pod) || p.disk.Cluster() == 0:
		case first == nil:
			first = p.disk
		case p.disk.Cluster() != first.Cluster():
			err = fmt.Errorf("the Services lead to members of two clusters, %s and %s, the latter in pod %s", first.Cluster(), p.disk.Cluster(), pod.Name)
		}
	})
	return err
}

// noteLeader notes that an operator has seen the member at an address lead. That it still does when
// the operator acts on that, nobody can know.
func (n *modelNodes) noteLeader(address string) {
	for _, p := range n.pods {
		if p.ip+":2379" == address {
			n.led[p.name] = true
		}
	}
}

// seedServes returns an error if no operator has seen the seed of that name lead: then the cluster must
// not be touched.
func (n *modelNodes) seedServes(seed string) error {
	if n.led[seed] {
		return nil
	}
	return fmt.Errorf("the operator stops a member, and the seed %q does not serve", seed)
}

// maySwitch returns an error if a cluster becomes another one although the new one does not serve, or
// a replaced member runs.
func (n *modelNodes) maySwitch(before client.Object, now *v1beta2.EtcdCluster) error {
	old, ok := before.(*v1beta2.EtcdCluster)
	if !ok || old == nil || old.Status.ClusterID == now.Status.ClusterID || now.Status.Restoring == nil {
		return nil
	}
	if now.Status.Restoring.Phase != v1beta2.RestoreCompleting {
		return nil
	}
	if err := n.seedServes(now.Status.Restoring.Seed); err != nil {
		return err
	}
	var err error
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		if p := n.pods[pod.UID]; p != nil && p.runs && p.disk.Cluster() == members.ParseID(old.Status.ClusterID) {
			err = errors.Join(err, fmt.Errorf("the cluster is replaced, and replaced member %s runs", pod.Name))
		}
	})
	return err
}

// mayDelete returns an error if a volume must not be deleted.
func (n *modelNodes) mayDelete(claim *corev1.PersistentVolumeClaim) error {
	disk, st := n.disks[claim.UID], n.statusOf()
	isMembers := claim.Labels[objects.ClusterLabel] != ""
	since, _ := time.Parse(time.RFC3339, claim.Annotations[annotation.KeptSince])
	switch {
	case claim.Annotations[annotation.Suspect] != "" && n.world.Now().Before(since.Add(7*24*time.Hour)):
		return fmt.Errorf("the operator deletes the volume %s, whose data is only suspected to be wrong", claim.Name)
	case !isMembers && claim.Annotations[annotation.KeptFor] != "":
		return fmt.Errorf("the operator deletes the volume %s, which is to be kept", claim.Name)
	case disk == nil:
		return nil
	case isMembers && st.Restoring != nil && st.Restoring.Phase == v1beta2.RestoreCompleting && slices.Contains(st.Restoring.Replaced, claim.Name):
		return fmt.Errorf("the operator deletes the replaced volume %s, and the restored cluster is not complete", claim.Name)
	case isMembers || disk.Cluster() == members.ParseID(st.ClusterID):
		return n.isSpare(claim.Name, disk)
	}
	return nil
}
