package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
)

// lostMember is one way in which a cluster loses a member.
type lostMember struct {
	what                      string
	hasVolumes, deletesVolume bool
	bound                     time.Duration
}

var lostMembers = []lostMember{
	{"pod deleted, with volumes: back as the same member", true, false, 15 * time.Second},
	{"pod deleted, without volumes: replaced by another member", false, false, 15 * time.Second},
	{"pod and volume deleted: replaced by another member", true, true, time.Minute},
}

// repairMembers takes a member of three, one after the other, and takes the time until three serve.
func repairMembers(ctx context.Context, b *bench) ([]figure, error) {
	const namespace = "bench-etcd-repair"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var figures []figure
	for i, how := range lostMembers {
		ec := newEtcd(namespace, fmt.Sprintf("etcd-%d", i), etcdMembers)
		if how.hasVolumes {
			ec.Spec.Pod = smallVolumes()
		}
		if _, err := b.etcd(ctx, ec); err != nil {
			return nil, err
		}
		var took []time.Duration
		leaders := 0
		for round := range b.rounds {
			if err := b.quiet(ctx); err != nil {
				return nil, err
			}
			members := slices.Clone(ec.Status.Members.Ready)
			slices.Sort(members)
			lost := members[round%len(members)]
			led := ec.Status.Leader == lost
			if led {
				leaders++
			}
			d, err := b.repairMember(ctx, ec, lost, how)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", how.what, err)
			}
			b.say("%s: %s (the leader: %t)", how.what, inSeconds(d), led)
			took = append(took, d)
		}
		figures = append(figures, etcdFigure("etcd repair", how.what, took, how.bound, fmt.Sprintf("%d of %d were leaders", leaders, len(took))))
		if err := b.endEtcd(ctx, ec); err != nil {
			return nil, err
		}
	}
	return figures, remove(ctx)
}

// smallVolumes gives each member a volume.
func smallVolumes() *v1beta2.PodPolicy {
	return &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}},
	}}
}

// repairMember takes a member, as `kubectl delete` does, and returns how long it was until the
// cluster was whole again.
func (b *bench) repairMember(ctx context.Context, ec *v1beta2.EtcdCluster, lost string, how lostMember) (time.Duration, error) {
	before, err := b.etcdPods(ctx, ec.Namespace, ec.Name)
	if err != nil {
		return 0, err
	}
	id, uid := idOfMember(ec, lost), before[lost].UID
	began := time.Now()
	if how.deletesVolume {
		volume := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ec.Namespace, Name: lost}}
		if err := b.client.Delete(ctx, volume); err != nil {
			return 0, err
		}
	}
	if err := b.client.Delete(ctx, before[lost]); err != nil {
		return 0, err
	}
	isSame := how.hasVolumes && !how.deletesVolume
	whole, err := b.etcdWhole(ctx, ec, func(pods map[string]*corev1.Pod) bool {
		pod := pods[lost]
		return isSame && pod != nil && pod.UID != uid || !isSame && pod == nil
	})
	if err != nil {
		return 0, err
	}
	if isSame && idOfMember(ec, lost) != id {
		return 0, fmt.Errorf("member %s was %s and is %s", lost, id, idOfMember(ec, lost))
	}
	return whole.Sub(began), nil
}

// idOfMember is etcd's ID of a member.
func idOfMember(ec *v1beta2.EtcdCluster, name string) string {
	for _, m := range ec.Status.MemberList {
		if m.Name == name {
			return m.ID
		}
	}
	return ""
}
