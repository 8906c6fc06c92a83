package loop

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/internal/kit/status"
)

// AnnounceReady logs that the condition Ready has another status or reason, and returns the event about it, if it is one
// to report. The action is what the object does once it is Ready.
func AnnounceReady(ctx context.Context, before, after []metav1.Condition, action string, isReported func(is metav1.Condition) bool) []Event {
	was, is := meta.FindStatusCondition(before, status.Ready), meta.FindStatusCondition(after, status.Ready)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	log.FromContext(ctx).Info("status changed", "ready", is.Status, "reason", is.Reason, "message", is.Message)
	switch {
	case !isReported(*is):
		return nil
	case is.Status == metav1.ConditionTrue:
		return []Event{{Reason: is.Reason, Action: action, Note: is.Message}}
	}
	return []Event{{Type: corev1.EventTypeWarning, Reason: is.Reason, Action: action, Note: status.Shortened(is.Message)}}
}
