package memcached

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// announce is about a change of status, when it is one to report.
func announce(ctx context.Context, before, after *v1alpha1.Memcached) []loop.Event {
	countChange(before, after)
	events := append(announceUpgrade(ctx, before.Status.Upgrade, after.Status.Upgrade),
		disruption.Announce(before.Status.Conditions, after.Status.Conditions)...)
	is := meta.FindStatusCondition(after.Status.Conditions, status.Ready)
	was := meta.FindStatusCondition(before.Status.Conditions, status.Ready)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return events
	}
	log.FromContext(ctx).Info("status changed", "ready", is.Status, "reason", is.Reason, "message", is.Message)
	switch {
	case is.Status == metav1.ConditionTrue:
		return append(events, loop.Event{Type: corev1.EventTypeNormal, Reason: is.Reason, Action: "Serve", Note: is.Message})
	case is.Reason == reasonUpgrading || is.Reason == reasonUnavailable:
		return events // seen in status while it lasts
	}
	return append(events, loop.Event{Type: corev1.EventTypeWarning, Reason: is.Reason, Action: "Serve", Note: status.Shortened(is.Message)})
}

// announceUpgrade announces a change of the servers before it begins: a cold one waits
// for the status that this follows.
func announceUpgrade(ctx context.Context, before, is *v1alpha1.UpgradeStatus) []loop.Event {
	if is == nil || before != nil && before.Revision == is.Revision && before.Kind == is.Kind {
		return nil
	}
	log.FromContext(ctx).Info("servers are to be changed", "kind", is.Kind, "what", is.Message)
	severity := corev1.EventTypeNormal
	if is.Kind == v1alpha1.Cold {
		severity = corev1.EventTypeWarning
	}
	return []loop.Event{{Type: severity, Reason: string(is.Kind) + "Upgrade", Action: "Upgrade", Note: status.Shortened(is.Message)}}
}
