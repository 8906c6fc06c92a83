package membership

import (
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/restoring"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// This file is about volumes of members that are replaced because their data is not trusted. Who says so may be wrong, and
// what is deleted is the only proof. So such a volume is marked, with the reason, before its member is removed, and is kept
// after that for as long as the spec says, or until the user deletes it.

// MarkSuspects marks the volumes of members whose data is not trusted. A mark stays: another leader may act upon what it
// says, and a volume that is kept for nothing does no harm.
func MarkSuspects(v *view.View) (writes []loop.Write) {
	for _, m := range v.Members {
		if m.Claim == nil || objects.IsEnding(m.Claim) || m.Claim.Annotations[annotation.Suspect] != "" {
			continue
		}
		if is := m.Suspicion(); is != "" {
			writes = append(writes, marked(m, "suspect", "volume of member "+m.PodName+" is to be kept: "+is, annotation.Suspect, is))
		}
	}
	return writes
}

func marked(m *view.Member, part, why, name string, value any) loop.Write {
	return loop.Patch{Object: m.Claim, Part: part, Why: why, IfCurrent: true, Metadata: map[string]any{"annotations": map[string]any{name: value}}}
}

// dropped deletes the volume of one that is no member, unless it is kept.
func dropped(ec *v1beta2.EtcdCluster, v *view.View, m *view.Member, why string, s *step.Step) {
	suspicion := m.Claim.Annotations[annotation.Suspect]
	if objects.IsEnding(m.Claim) || restoring.IsKept(ec, m.PodName) {
		return
	}
	until, isKept := KeptUntil(ec, m)
	switch {
	case suspicion != "" && !isKept:
		s.Do(marked(m, "kept", "kept: "+suspicion, annotation.KeptSince, v.Now.UTC().Format(time.RFC3339)))
	case suspicion != "" && v.Now.Before(until):
		s.Wake(until)
	default:
		s.Do(step.Dropped(m.Claim, why))
	}
}

// keepsSuspects is for how long volumes are kept whose data is not trusted, by default.
const keepsSuspects = 7 * 24 * time.Hour

// KeptUntil is until when the volume of one that was a member is kept because its data is not trusted.
func KeptUntil(ec *v1beta2.EtcdCluster, m *view.Member) (until time.Time, is bool) {
	if m.Claim == nil {
		return until, false
	}
	since, err := time.Parse(time.RFC3339, m.Claim.Annotations[annotation.KeptSince])
	if err != nil {
		return until, false
	}
	keeps := keepsSuspects
	if is := ec.Spec.KeepSuspectVolumes; is != nil {
		keeps = is.Duration
	}
	return since.Add(keeps), true
}
