package memcached

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/status"
)

// events tells what happened to a Memcached, after it was stored in status.
type events struct {
	recorder.EventRecorder
}

// changed tells a change of status, when it is one to tell.
func (e events) changed(ctx context.Context, mc *v1alpha1.Memcached, before *v1alpha1.MemcachedStatus) {
	e.upgrade(ctx, mc, before.Upgrade)
	is := meta.FindStatusCondition(mc.Status.Conditions, status.Ready)
	was := meta.FindStatusCondition(before.Conditions, status.Ready)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return
	}
	log.FromContext(ctx).Info("status changed", "ready", is.Status, "reason", is.Reason, "message", is.Message)
	switch {
	case is.Status == metav1.ConditionTrue:
		e.Eventf(mc, nil, corev1.EventTypeNormal, is.Reason, "Serve", "%s", is.Message)
	case is.Reason == reasonUpgrading || is.Reason == reasonUnavailable:
		// Seen in status while it lasts.
	default:
		e.Eventf(mc, nil, corev1.EventTypeWarning, is.Reason, "Serve", "%s", status.Shortened(is.Message))
	}
}

// upgrade tells of a change of the servers before it begins: a cold one waits
// for the status that this follows.
func (e events) upgrade(ctx context.Context, mc *v1alpha1.Memcached, before *v1alpha1.UpgradeStatus) {
	is := mc.Status.Upgrade
	if is == nil || before != nil && before.Revision == is.Revision && before.Kind == is.Kind {
		return
	}
	log.FromContext(ctx).Info("servers are to be changed", "kind", is.Kind, "what", is.Message)
	severity := corev1.EventTypeNormal
	if is.Kind == v1alpha1.Cold {
		severity = corev1.EventTypeWarning
	}
	e.Eventf(mc, nil, severity, string(is.Kind)+"Upgrade", "Upgrade", "%s", status.Shortened(is.Message))
}

// tookBack tells that a child which had lost its owner reference or labels has
// them again.
func (e events) tookBack(mc *v1alpha1.Memcached, kind string, child client.Object) {
	e.Eventf(mc, nil, corev1.EventTypeNormal, "TakenBack", "Repair",
		"%s %q had lost its owner reference or labels, and has them again", kind, child.GetName())
}
