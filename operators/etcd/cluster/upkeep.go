package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
)

const (
	// worthFreeing is how much of a database file has to be unused, in bytes and as a part of the
	// file, for a defragmentation to pay: the member does not serve meanwhile, some seconds for
	// each GiB that is in use.
	worthFreeing     = 100 << 20
	worthFreeingPart = 2 // one half
	// emptyAgain is when it is tried again to make room in a database that is full again without
	// another write.
	emptyAgain = 10 * time.Minute
)

// keepUp does what keeps a cluster going for years: it resolves a full database, and makes files
// smaller that are mostly empty. One member at a time, the leader last, which hands over before.
func (p *plan) keepUp(ec *v1beta2.EtcdCluster, seen observation) bool {
	if !p.view.isWhole() {
		return false
	}
	at, ok := p.leadingEndpoint(ec)
	if !ok {
		return false
	}
	if len(p.alarms(members.NoSpace)) > 0 {
		return p.makeSpace(ec, seen, at)
	}
	var next *member
	for i := range p.view.members {
		m := &p.view.members[i]
		if m.isForeign() || !paysToDefragment(m.answer.status) {
			continue
		}
		if next == nil || next.ID == p.view.leader {
			next = m
		}
	}
	if next == nil {
		return false
	}
	p.soon(seen)
	if next.ID == p.view.leader && p.moveLeader(seen, at) {
		return true
	}
	here := endpointOf(ec, next.pod)
	p.change("defragment", fmt.Sprintf("member %s defragmented: %d of %d bytes are in use", next.name, next.answer.status.DBSizeInUse, next.answer.status.DBSize),
		func(ctx context.Context) error { return seen.client.Defragment(ctx, here) })
	return true
}

// paysToDefragment says whether it is worth to make a database file smaller.
func paysToDefragment(s members.Status) bool {
	free := s.DBSize - s.DBSizeInUse
	return s.DBSizeInUse > 0 && free >= worthFreeing && free >= s.DBSize/worthFreeingPart
}

// makeSpace resolves a full database: the history is dropped, files are made smaller, one after the
// other and the leader's last, and the alarm is disarmed. How much of a file is in use a member
// that takes no writes does not find out, so nothing is made of that. If the history was not what
// filled the database, the alarm comes back with the next writes; it is tried again when there is
// another revision, or after some minutes.
func (p *plan) makeSpace(ec *v1beta2.EtcdCluster, seen observation, at members.Endpoint) bool {
	revision := p.view.leading().answer.status.Revision
	if again := seen.emptiedAt.Add(emptyAgain); seen.emptied == revision && seen.now.Before(again) {
		p.Wake(again)
		p.stall(reasonNoSpace, "The database is full, and it is not its history that fills it: delete keys, or set a greater ETCD_QUOTA_BACKEND_BYTES in spec.pod.etcdEnv")
		return false
	}
	alarms := p.alarms(members.NoSpace)
	var endpoints []members.Endpoint
	for i := range p.view.members {
		if m := &p.view.members[i]; !m.isForeign() && m.ID != p.view.leader {
			endpoints = append(endpoints, endpointOf(ec, m.pod))
		}
	}
	endpoints = append(endpoints, at)
	p.soon(seen)
	p.change("compact", fmt.Sprintf("history up to revision %d dropped: the database is full", revision), func(ctx context.Context) error {
		if err := seen.client.Compact(ctx, at, revision); err != nil && !errors.Is(err, members.ErrCompacted) {
			return err
		}
		for _, endpoint := range endpoints {
			if err := seen.client.Defragment(ctx, endpoint); err != nil {
				return err
			}
		}
		for _, alarm := range alarms {
			if err := seen.client.Disarm(ctx, at, alarm); err != nil {
				return err
			}
		}
		seen.noteEmptied(revision)
		return nil
	})
	return true
}

// disarmOld ends the alarms of members that are none any more: nobody can write or read until then.
func (p *plan) disarmOld(ec *v1beta2.EtcdCluster, seen observation) bool {
	at, ok := p.leadingEndpoint(ec)
	if !ok || !p.view.isCurrent {
		return false
	}
	for _, alarm := range p.alarms(members.Corrupt) {
		if p.view.find(func(m *member) bool { return m.ID == alarm.Member }) == nil {
			p.soon(seen)
			p.change("disarm", "alarm of a member disarmed that was removed", func(ctx context.Context) error {
				return seen.client.Disarm(ctx, at, alarm)
			})
			return true
		}
	}
	return false
}

// alarms are the alarms of a type, as the leader has them.
func (p *plan) alarms(kind string) []members.Alarm {
	var all []members.Alarm
	if m := p.view.leading(); m != nil {
		for _, alarm := range m.answer.status.Alarms {
			if alarm.Type == kind {
				all = append(all, alarm)
			}
		}
	}
	return all
}

// growVolumes requests more storage for volumes that have less than the spec requests. Whether
// that is possible is up to the storage class, and the API server says so.
func (p *plan) growVolumes(ec *v1beta2.EtcdCluster, seen observation) {
	if !hasVolumes(ec) {
		return
	}
	want, ok := ec.Spec.Pod.PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return
	}
	for _, name := range sortedKeys(seen.claims) {
		c := seen.claims[name]
		has := c.Spec.Resources.Requests[corev1.ResourceStorage]
		if isEnding(c) || c.Status.Phase != corev1.ClaimBound || has.Cmp(want) >= 0 {
			continue
		}
		p.patch(c, "grow", fmt.Sprintf("volume of member %s grows from %s to %s", name, &has, &want), map[string]any{
			"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": want.String()}}},
		})
	}
}

// rounded is a size that changes only when it changes by an eighth, so that status is not
// written for every few keys.
func rounded(size int64) *resource.Quantity {
	step := int64(1 << 20)
	for step*16 <= size {
		step *= 2
	}
	return resource.NewQuantity((size+step-1)/step*step, resource.BinarySI)
}
