package webserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// announce is about a change of status, when it is one to report.
func announce(ctx context.Context, before, after *webv1.WebServer) []loop.Event {
	countRollout(before, after)
	events := disruption.Announce(before.Status.Conditions, after.Status.Conditions)
	is := meta.FindStatusCondition(after.Status.Conditions, status.Ready)
	was := meta.FindStatusCondition(before.Status.Conditions, status.Ready)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return events
	}
	log.FromContext(ctx).Info("status changed", "ready", is.Status, "reason", is.Reason, "message", is.Message)
	switch {
	case is.Status == metav1.ConditionTrue:
		return append(events, loop.Event{Type: corev1.EventTypeNormal, Reason: is.Reason, Action: "Serve", Note: is.Message})
	case is.Reason == reasonRollingOut || is.Reason == reasonUnavailable:
		return events // seen in status while it lasts
	}
	return append(events, loop.Event{Type: corev1.EventTypeWarning, Reason: is.Reason, Action: "Serve", Note: status.Shortened(is.Message)})
}
