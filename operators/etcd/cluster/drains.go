package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/kit/words"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/view"
)

// This file says what a drain waits for that does not come by itself. Kubernetes tells whoever drains no more than that a
// budget does not allow it.

// aDrain is how a sentence about a drain begins, in the message of Ready. It ends with the next part of the message.
const aDrain = "; a drain of node "

// heldBack says which pod a drain does not take: one that does not serve, or one that does, because of another member that
// does not; empty if it takes each in its time.
func heldBack(ec *v1beta2.EtcdCluster, v *view.View) string {
	if m := v.HeldBack(ec); m != nil {
		what := "and its data is nowhere else: delete it if that may go"
		if objects.HasVolumes(ec) {
			what = "delete it if the drain is to go on: its volume stays"
		}
		return fmt.Sprintf(aDrain+"%s does not evict pod %s, as too few others are ready, %s", m.Pod.Spec.NodeName, m.PodName, what)
	}
	if m, down := v.WaitsFor(ec); m != nil {
		return fmt.Sprintf(aDrain+"%s does not take pod %s until member %s serves", m.Pod.Spec.NodeName, m.PodName, down.ShownName(ec))
	}
	return ""
}

// announceDrain reports a drain that waits, once for each pod and what it waits for.
func announceDrain(before, after *v1beta2.EtcdCluster) []loop.Event {
	is := drainIn(after)
	if is == "" || is == drainIn(before) {
		return nil
	}
	return []loop.Event{{Type: corev1.EventTypeWarning, Reason: "DrainWaits", Action: "Drain", Note: status.Shortened(words.Capitalized(is))}}
}

// drainIn is the sentence about a drain in the condition Ready; empty if there is none.
func drainIn(ec *v1beta2.EtcdCluster) string {
	ready := meta.FindStatusCondition(ec.Status.Conditions, status.Ready)
	if ready == nil {
		return ""
	}
	_, rest, found := strings.Cut(ready.Message, aDrain)
	if !found {
		return ""
	}
	sentence, _, _ := strings.Cut(rest, "; ")
	return strings.TrimPrefix(aDrain, "; ") + sentence
}
