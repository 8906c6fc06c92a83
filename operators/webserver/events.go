package webserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/status"
)

// events tells what happened to a WebServer, after it was stored in status.
type events struct {
	recorder.EventRecorder
}

// changed tells a change of status, when it is one to tell.
func (e events) changed(ctx context.Context, ws *webv1.WebServer, before *webv1.WebServerStatus) {
	if failed := ws.Status.FailedRollout; failed != nil && (before.FailedRollout == nil || *before.FailedRollout != *failed) {
		rollbacks.WithLabelValues(failed.Reason).Inc()
	}
	is := meta.FindStatusCondition(ws.Status.Conditions, status.Ready)
	was := meta.FindStatusCondition(before.Conditions, status.Ready)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return
	}
	log.FromContext(ctx).Info("status changed", "ready", is.Status, "reason", is.Reason, "message", is.Message)
	switch {
	case is.Status == metav1.ConditionTrue:
		e.Eventf(ws, nil, corev1.EventTypeNormal, is.Reason, "Serve", "%s", is.Message)
	case is.Reason == reasonRollingOut || is.Reason == reasonUnavailable:
		// Seen in status while it lasts.
	default:
		e.Eventf(ws, nil, corev1.EventTypeWarning, is.Reason, "Serve", "%s", status.Shortened(is.Message))
	}
}

// tookBack tells that a child which had lost its owner reference or labels has
// them again.
func (e events) tookBack(ws *webv1.WebServer, kind string, child client.Object) {
	e.Eventf(ws, nil, corev1.EventTypeNormal, "TakenBack", "Repair",
		"%s %q had lost its owner reference or labels, and has them again", kind, child.GetName())
}
