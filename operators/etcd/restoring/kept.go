package restoring

import (
	"slices"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/view"
)

// This file is about the volumes of members that a restored cluster has replaced. Until that is
// complete they are kept, and with keepOld also then: they lose the label by which the operator
// finds the volumes of members, so it never touches them again. They go with the EtcdCluster.

// IsKept says whether the volume of a member is not to be deleted, although there is no such member.
func IsKept(ec *v1beta2.EtcdCluster, name string) bool {
	r, done := ec.Status.Restoring, ec.Status.Restored
	return r != nil && slices.Contains(r.Replaced, name) || done != nil && slices.Contains(done.KeptPersistentVolumeClaims, name)
}

// setAside takes the replaced volumes out of the operator's sight; nothing, if all of them are.
func setAside(v *view.View, r *v1beta2.Restoring) (writes []loop.Write) {
	for _, name := range r.Replaced {
		if c := v.Of(name).Claim; c != nil && !objects.IsEnding(c) {
			writes = append(writes, loop.Patch{
				Object: c, Part: "kept", Why: "kept: its member was replaced by a restored cluster", IfCurrent: true,
				Metadata: map[string]any{"labels": map[string]any{objects.ClusterLabel: nil}, "annotations": map[string]any{annotation.KeptFor: r.Seed}},
			})
		}
	}
	return writes
}
