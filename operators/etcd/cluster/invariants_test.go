package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/model"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/pki"
)

// never returns what must never be so after a change of the cluster: that clients are led to a learner, that there are two
// clusters, that an operator has taken away a member that the others cannot do without, or data of one that
// is a member still. Once the user has accepted the loss of data, all but the first may be.
func never(c sim.Change, r *testkit.Run) error {
	n := r.Own.(*modelNodes)
	if slice, is := c.New.(*discoveryv1.EndpointSlice); is {
		return n.leadsToVoters(slice)
	}
	if n.hasAccepted() {
		return nil
	}
	if pod, is := c.New.(*corev1.Pod); is && c.By == evictionAPI {
		return n.outlives(pod)
	}
	if err := n.isOne(); err != nil || !strings.HasPrefix(c.By, "operator") {
		return err
	}
	if ec, ok := c.New.(*v1beta2.EtcdCluster); ok {
		return errors.Join(n.maySwitch(c.Old, ec), n.mayMaintain(ec))
	}
	switch now := c.New.(type) {
	case *corev1.Secret:
		return n.areTrusted(now)
	case *corev1.Pod:
		old, _ := c.Old.(*corev1.Pod)
		isEnd := old != nil && old.DeletionTimestamp == nil && (now.DeletionTimestamp != nil || c.Type == watch.Deleted)
		isRestart := old != nil && objects.ImageOfContainer(old) != objects.ImageOfContainer(now)
		p := n.pods[now.UID]
		if p == nil {
			return nil
		}
		if isRestart && old.Annotations[annotation.StoppedFor] != now.Annotations[annotation.StoppedFor] {
			return n.seedServes(now.Annotations[annotation.StoppedFor])
		}
		if !isServed(now) && p.disk.Cluster() != members.ParseID(n.statusOf().ClusterID) {
			return nil // it is a seed that is not needed any more
		}
		if isEnd && n.mustStay(now.Name) {
			return fmt.Errorf("the operator deletes %s, which is only not reached", now.Name)
		}
		if isEnd && p.claim == "" {
			if err := n.isSpare(now.Name, p.disk); err != nil {
				return err
			}
		}
		if isEnd || isRestart {
			return errors.Join(n.canDoWithout(now), n.isIdle(now))
		}
	case *corev1.PersistentVolumeClaim:
		if now.DeletionTimestamp != nil || c.Type == watch.Deleted {
			return n.mayDelete(now)
		}
	}
	return nil
}

// leadsToVoters returns an error if the Service for clients leads to a learner that is ready.
func (n *modelNodes) leadsToVoters(slice *discoveryv1.EndpointSlice) error {
	if !strings.HasSuffix(slice.Labels[discoveryv1.LabelServiceName], "-client") {
		return nil
	}
	for _, e := range slice.Endpoints {
		p := n.pods[e.TargetRef.UID]
		if p == nil || !*e.Conditions.Ready {
			continue
		}
		for _, m := range p.disk.Members() {
			if m.ID == p.disk.Member() && m.IsLearner {
				return fmt.Errorf("clients are led to %s, which is a learner", p.name)
			}
		}
	}
	return nil
}

// areTrusted returns an error if a certificate is signed by a CA that a member has not started with:
// the member would not talk to who shows it.
func (n *modelNodes) areTrusted(secret *corev1.Secret) error {
	for _, role := range []pki.Role{pki.Peer, pki.Server, pki.Client} {
		cert, err := pki.Parse(secret.Data[role.Files.Cert])
		if err != nil {
			continue // it is for another role
		}
		for _, p := range n.pods {
			if !p.runs {
				continue
			}
			trusted := x509.NewCertPool()
			trusted.AppendCertsFromPEM(p.trusts)
			_, err := cert.Verify(x509.VerifyOptions{Roots: trusted, CurrentTime: n.world.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			if err != nil {
				return fmt.Errorf("the certificate in %s is of a CA that %s has not started with: %w", secret.Name, p.name, err)
			}
		}
	}
	return nil
}

// isOne returns an error if there are leaders of two clusters.
func (n *modelNodes) isOne() error {
	var first *model.Disk
	for _, disk := range n.model.Leading() {
		switch {
		case !n.isServed(disk):
		case first == nil:
			first = disk
		case disk.Cluster() != first.Cluster():
			return fmt.Errorf("there is a second cluster: %s leads %s, and %s leads %s", first.Member(), first.Cluster(), disk.Member(), disk.Cluster())
		}
	}
	return n.areOfOne()
}

// isSpare returns an error if data that the operator deletes is of a member that is one still, or
// has the last copy of what was acknowledged.
func (n *modelNodes) isSpare(name string, disk *model.Disk) error {
	for _, leading := range n.model.Leading() {
		for _, m := range leading.Members() {
			if m.ID == disk.Member() && m.Name != "" {
				return fmt.Errorf("the operator deletes the data of %s, which is a member", name)
			}
		}
	}
	st := n.statusOf()
	cluster := members.ParseID(st.ClusterID)
	// That a restored member is lost in the moment in which what it has replaced is deleted, nobody can
	// know. Volumes are kept for longer, see mayDelete.
	isSwitched := st.Restoring != nil && st.Restoring.Phase == v1beta2.RestoreCompleting && disk.Cluster() != cluster
	isReplaced := isSwitched || slices.ContainsFunc(n.model.Leading(), func(d *model.Disk) bool { return d.Cluster() == cluster })
	for _, write := range n.model.Acknowledged() {
		if isReplaced && n.model.AcknowledgedBy(write) != cluster {
			continue // the cluster is another one, which serves
		}
		if holders := n.model.Holders(write); len(holders) == 1 && holders[0] == disk {
			return fmt.Errorf("the operator deletes the data of %s, which has the last copy of a write that was acknowledged", name)
		}
	}
	return nil
}

// mayMaintain returns an error if status has maintenance of a member while another one is being defragmented.
func (n *modelNodes) mayMaintain(ec *v1beta2.EtcdCluster) error {
	is := ec.Status.Maintenance
	if is == nil || n.isSlow {
		return nil
	}
	for _, name := range n.model.Defragmenting() {
		if name != is.Member {
			return fmt.Errorf("the operator decides on the maintenance of %s while %s is being defragmented", is.Member, name)
		}
	}
	return nil
}

// isIdle returns an error if a member that is taken away is being defragmented, but for a restored cluster.
func (n *modelNodes) isIdle(pod *corev1.Pod) error {
	if n.isSlow || n.statusOf().Restoring != nil || !slices.Contains(n.model.Defragmenting(), pod.Name) {
		return nil
	}
	return fmt.Errorf("the operator takes %s away while it is being defragmented", pod.Name)
}

// changesOne returns an error if the members are to be changed while another change is not complete:
// while there is a member that has not started, or is a learner, besides the one that is changed.
func (n *modelNodes) changesOne(changed members.ID) error {
	for _, leading := range n.model.Leading() {
		for _, m := range leading.Members() {
			if m.ID != changed && (m.IsLearner || m.Name == "") {
				return fmt.Errorf("the operator changes the members while %s is being added", m.PeerURLs[0])
			}
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
	c, _ := n.model.Connect(nil, rootUser)
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
	if isVoter[mine.ID] && following+1 >= objects.Majority(voters) && following < objects.Majority(voters) {
		return fmt.Errorf("the operator takes %s away, without which %d of %d voters are left", pod.Name, following, voters)
	}
	return nil
}
