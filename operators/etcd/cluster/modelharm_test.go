package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/rollout"
)

// This file has what users and misfortune do to the members of a simulated cluster.

// put puts a key through the first member that takes it.
func (n *modelNodes) put(*testkit.Run) error {
	err := errors.New("no pod runs")
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		if p := n.pods[pod.UID]; err != nil && p != nil && p.runs && isServed(pod) {
			var revision int64
			if revision, err = n.model.Put(p.ip + ":2379"); err == nil {
				n.goesForward(revision, p.disk.Cluster())
			}
		}
	})
	for _, m := range n.elsewhere {
		if _, elsewhere := n.model.Put(m.Address); elsewhere == nil {
			err = nil
		}
	}
	return err
}

// goesForward fails if a restored cluster has given a write a revision that the one before has given out: who watches would
// never know of it.
func (n *modelNodes) goesForward(revision int64, by members.ID) {
	st := n.statusOf()
	isRestored := st.Restoring != nil && members.ParseID(st.Restoring.ClusterID) == by || st.Restored != nil && members.ParseID(st.Restored.ClusterID) == by
	if last := n.given; isRestored && by != last.by && revision <= last.revision {
		n.world.Fail(fmt.Errorf("cluster %s has given out revision %d, and cluster %s before it %d", by, revision, last.by, last.revision))
	}
	n.given.revision, n.given.by = revision, by
}

func (n *modelNodes) lost(*testkit.Run) error {
	lost := 0
	if len(n.backups) == 0 {
		lost = len(n.model.Lost())
	}
	for _, leading := range n.model.Leading() {
		missing := 0
		for _, write := range n.model.Acknowledged() {
			if n.model.AcknowledgedBy(write) == leading.Cluster() && !leading.Has(write) {
				missing++
			}
		}
		lost = max(lost, missing)
	}
	if lost > 0 {
		return fmt.Errorf("%d writes that were acknowledged are lost", lost)
	}
	return nil
}

func (n *modelNodes) corrupt(_ *testkit.Run, member string) error {
	defer n.world.Changed()
	n.rotten = append(n.rotten, member)
	return n.model.Rot(member)
}

func (n *modelNodes) damage(_ *testkit.Run, member string) error {
	for _, p := range n.inOrder() {
		if p.name == member {
			p.disk.Corrupt()
			n.model.Kill(member)
			n.world.Changed()
			return nil
		}
	}
	return fmt.Errorf("there is no member %s", member)
}

func (n *modelNodes) fill(r *testkit.Run) error {
	for range 100000 {
		if err := n.put(r); errors.Is(err, members.ErrNoSpace) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return errors.New("the database is not full")
}

func (n *modelNodes) age(*testkit.Run) error {
	defer n.world.Changed()
	err := errors.New("no pod runs")
	for _, p := range n.inOrder() {
		if p.runs && err != nil {
			err = n.model.Overwrite(p.ip+":2379", 850<<10) // of a GiB of 1024 bytes each
		}
	}
	return err
}

// slowDisks has members take longer for a defragmentation than the operator waits for it.
func (n *modelNodes) slowDisks() {
	n.isSlow, n.model.DefragmentTakes = true, members.DefragmentPatience(0)+time.Minute
}

func (n *modelNodes) bloat(*testkit.Run) error {
	defer n.world.Changed()
	err := errors.New("no pod runs")
	for _, p := range n.inOrder() {
		if p.runs && err != nil {
			err = n.model.Bloat(p.ip+":2379", 2*rollout.WorthFreeing)
		}
	}
	return err
}

func (n *modelNodes) loseImages(*testkit.Run) error {
	n.gone = "quay.io/"
	for _, p := range n.inOrder() {
		if p.runs {
			n.model.Kill(p.name)
		}
	}
	n.world.Changed()
	return nil
}

func (n *modelNodes) byHand(*testkit.Run) (c members.Client, at members.Endpoint, err error) {
	c, err = n.model.Connect(nil, rootUser)
	var all []string
	for _, p := range n.inOrder() {
		if p.runs {
			all = append(all, p.ip+":2379")
		}
	}
	for _, m := range n.elsewhere {
		all = append(all, m.Address)
	}
	for _, address := range all {
		here := members.Endpoint{Address: address}
		if s, wrong := c.Status(context.Background(), here); wrong == nil && s.ID == s.Leader {
			return c, here, nil
		}
	}
	return c, at, errors.Join(err, errors.New("nobody leads"))
}
