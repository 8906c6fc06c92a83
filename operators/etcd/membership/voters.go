package membership

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/view"
)

// MarkVoters marks the pods of voters, and of no others: the Service for clients leads to those that are marked. One that
// was promoted may not know that yet, and refuses clients until then. What has lost its other marks gets them first.
func MarkVoters(v *view.View) (writes []loop.Write) {
	for _, m := range v.Members {
		isUnmarked := func(obj client.Object) bool { return obj.GetName() == m.PodName }
		votes := m.IsVoter() && !m.Answer.Status.IsLearner
		if m.Pod == nil || objects.IsEnding(m.Pod) || m.IsMarked() == votes || slices.ContainsFunc(v.Unmarked, isUnmarked) {
			continue
		}
		mark, why := any("true"), "it votes, and serves clients"
		if !votes {
			mark, why = nil, "it does not vote, and serves no clients"
		}
		writes = append(writes, loop.Patch{Object: m.Pod, Part: "voter", Why: why, IfCurrent: true,
			Metadata: map[string]any{"labels": map[string]any{objects.VoterLabel: mark}}})
	}
	return writes
}
