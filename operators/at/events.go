package at

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
)

// announce is about a change of status: for logs, metrics and, when it is one to report,
// an event.
func announce(ctx context.Context, group string, before, after *atv1alpha1.AtStatus) []loop.Event {
	if before.Phase != after.Phase {
		log.FromContext(ctx).Info("phase changed", "from", before.Phase, "to", after.Phase, "reason", after.Reason)
		if after.Phase.Finished() {
			runs.WithLabelValues(group, string(after.Phase)).Inc()
		}
	}
	if before.Phase == after.Phase && before.Reason == after.Reason && before.Attempts == after.Attempts {
		return nil
	}
	event := loop.Event{Type: corev1.EventTypeWarning, Reason: after.Reason, Action: "Start", Note: readyMessage(after)}
	switch {
	case after.Phase == atv1alpha1.Missed:
		event.Action = "Miss"
	case after.Phase == atv1alpha1.Failed, after.NextAttemptTime != nil, after.Reason == reasonStopping:
		event.Action = "Run"
	case after.Phase == atv1alpha1.Done:
		event.Type, event.Action = corev1.EventTypeNormal, "Run"
	case after.Reason == reasonRunning, after.Reason == reasonStarting, after.Reason == reasonScheduled, after.Reason == reasonPrepared, after.Reason == reasonSuspended:
		// As it should be, and status shows it: when a thousand Ats start, a
		// thousand events would be in their way.
		return nil
	}
	return []loop.Event{event}
}

// takenBack is about a pod that had lost marks of the operator: whether they are
// restored.
func takenBack(pod, missing string, failure error) loop.Event {
	if failure != nil {
		return loop.Event{Type: corev1.EventTypeWarning, Reason: "PodMarksLost", Action: "Restore",
			Note: fmt.Sprintf("Pod %q has lost its %s, which cannot be restored, so the run goes on with delays: %v", pod, missing, failure)}
	}
	return loop.Event{Type: corev1.EventTypeWarning, Reason: "PodMarksRestored", Action: "Restore",
		Note: fmt.Sprintf("Pod %q had lost its %s: restored", pod, missing)}
}

// readyMessage is the message that goes with the reason of a status.
func readyMessage(st *atv1alpha1.AtStatus) string {
	for _, condition := range st.Conditions {
		if condition.Type == atv1alpha1.ConditionReady {
			return condition.Message
		}
	}
	return st.Reason
}
