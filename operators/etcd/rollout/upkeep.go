package rollout

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

const (
	// WorthFreeing is how much of a database file has to be unused, in bytes or as a part of the quota, and as a part of
	// the file, for a defragmentation to pay: the member does not serve meanwhile, some seconds for each GiB that is in
	// use.
	WorthFreeing      = 100 << 20
	worthFreeingQuota = 4 // a quarter
	worthFreeingPart  = 2 // one half
)

// KeepUp does what keeps a cluster going for years: it makes files smaller that are mostly empty, unless they are about to
// grow again. One member at a time, the leader last, which hands over before.
func KeepUp(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if !v.IsWhole() || v.Leading() == nil {
		return s
	}
	var next *view.Member
	for _, m := range v.Members {
		if m.IsForeign() || !paysToDefragment(v, m) && !missedDefragmentation(ec, v, m) {
			continue
		}
		if next == nil || next.ID == v.Leader {
			next = m
		}
	}
	if next == nil {
		return s
	}
	if until, is := hasFailedLately(v); is {
		s.Wake(until)
		return s
	}
	if next.ID == v.Leader {
		s.Request = step.HandOver(ec, v)
	}
	if s.Request == nil {
		defragment(ec, v, &s, next)
	}
	s.Soon()
	return s.Last()
}

// paysToDefragment says whether it is worth to make the database file of a member smaller.
func paysToDefragment(v *view.View, m *view.Member) bool {
	s, enough := m.Answer.Status, int64(WorthFreeing)
	if quota := m.Quota(); quota > 0 {
		enough = min(enough, quota/worthFreeingQuota)
	}
	free := s.DBSize - s.DBSizeInUse
	return s.DBSizeInUse > 0 && free >= enough && free >= s.DBSize/worthFreeingPart && !isFilling(v)
}

// GrowVolumes requests more storage for volumes that have less than the spec requests. Whether
// that is possible is up to the storage class, and the API server says so.
func GrowVolumes(ec *v1beta2.EtcdCluster, v *view.View) (writes []loop.Write) {
	if !objects.HasVolumes(ec) {
		return nil
	}
	want, ok := ec.Spec.Pod.PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return nil
	}
	for _, m := range v.Present {
		c := m.Claim
		if c == nil || objects.IsEnding(c) || c.Status.Phase != corev1.ClaimBound || c.Annotations[annotation.KeptSince] != "" {
			continue
		}
		has := c.Spec.Resources.Requests[corev1.ResourceStorage]
		if has.Cmp(want) >= 0 {
			continue
		}
		writes = append(writes, loop.Patch{Object: c, Part: "grow", Why: fmt.Sprintf("volume of member %s grows from %s to %s", m.PodName, &has, &want),
			Spec: map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": want.String()}}}})
	}
	return writes
}

// Rounded is a size that changes only when it changes by an eighth, so that status is not
// written for every few keys.
func Rounded(size int64) *resource.Quantity {
	step := int64(1 << 20)
	for step*16 <= size {
		step *= 2
	}
	return resource.NewQuantity((size+step-1)/step*step, resource.BinarySI)
}
