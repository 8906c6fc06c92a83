package memcached

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
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
	return slices.Concat(
		announceUpgrade(ctx, before.Status.Upgrade, after.Status.Upgrade),
		disruption.Announce(before.Status.Conditions, after.Status.Conditions),
		loop.AnnounceReady(ctx, before.Status.Conditions, after.Status.Conditions, "Serve", func(is metav1.Condition) bool {
			return is.Reason != reasonUpgrading && is.Reason != reasonUnavailable // seen in status while it lasts
		}),
	)
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
