package at

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// events tells what happened to an At, after it was stored in status.
type events struct {
	recorder.EventRecorder
}

// changed tells a change of status, when it is one to tell.
func (e events) changed(obj runtime.Object, before, after *atv1alpha1.AtStatus) {
	if before.Phase == after.Phase && before.Reason == after.Reason && before.Attempts == after.Attempts {
		return
	}
	switch {
	case after.Phase == atv1alpha1.Missed:
		e.warn(obj, after, "Miss")
	case after.Phase == atv1alpha1.Failed, after.NextAttemptTime != nil:
		e.warn(obj, after, "Run")
	case after.Phase == atv1alpha1.Done:
		e.Eventf(obj, nil, corev1.EventTypeNormal, after.Reason, "Run", "%s", readyMessage(after))
	case after.Reason == reasonRunning, after.Reason == reasonStarting, after.Reason == reasonScheduled, after.Reason == reasonSuspended:
		// As it should be, and status shows it: when a thousand Ats start, a
		// thousand events would be in their way.
	default:
		e.warn(obj, after, "Start")
	}
}

// takenBack tells that a pod had lost marks of the operator, and whether they are
// restored.
func (e events) takenBack(obj runtime.Object, pod, missing string, failure error) {
	if failure != nil {
		e.Eventf(obj, nil, corev1.EventTypeWarning, "PodMarksLost", "Restore",
			"Pod %q has lost its %s, which cannot be restored, so the run goes on with delays: %v", pod, missing, failure)
		return
	}
	e.Eventf(obj, nil, corev1.EventTypeWarning, "PodMarksRestored", "Restore", "Pod %q had lost its %s: restored", pod, missing)
}

func (e events) warn(obj runtime.Object, st *atv1alpha1.AtStatus, action string) {
	e.Eventf(obj, nil, corev1.EventTypeWarning, st.Reason, action, "%s", readyMessage(st))
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
