package restore

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// announce reports that a restore has come to its end. What happens on the way is reported of the
// EtcdCluster.
func announce(ctx context.Context, before, after *v1beta2.EtcdRestore) []loop.Event {
	if before.Status.Phase != after.Status.Phase {
		log.FromContext(ctx).Info("restore changed", "phase", after.Status.Phase, "reason", after.Status.Reason)
	}
	ready := meta.FindStatusCondition(after.Status.Conditions, status.Ready)
	if isDone(before) || !isDone(after) || ready == nil {
		return nil
	}
	restores.WithLabelValues(results[after.Status.Phase]).Inc()
	if after.Status.Phase == v1beta2.RestoreFailed {
		return []loop.Event{{Type: corev1.EventTypeWarning, Reason: "RestoreFailed", Action: "Restore", Note: status.Shortened(after.Status.Reason)}}
	}
	return []loop.Event{{Reason: "Restored", Action: "Restore", Note: ready.Message}}
}
