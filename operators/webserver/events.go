package webserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
)

// announce is about a change of status, when it is one to report.
func announce(ctx context.Context, before, after *webv1.WebServer) []loop.Event {
	countRollout(before, after)
	return append(
		disruption.Announce(before.Status.Conditions, after.Status.Conditions),
		loop.AnnounceReady(ctx, before.Status.Conditions, after.Status.Conditions, "Serve", func(is metav1.Condition) bool {
			return is.Reason != reasonRollingOut && is.Reason != reasonUnavailable // seen in status while it lasts
		})...,
	)
}
