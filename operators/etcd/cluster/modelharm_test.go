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
			_, err = n.model.Put(p.ip + ":2379")
		}
	})
	for _, m := range n.elsewhere {
		if _, elsewhere := n.model.Put(m.Address); elsewhere == nil {
			err = nil
		}
	}
	return err
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
