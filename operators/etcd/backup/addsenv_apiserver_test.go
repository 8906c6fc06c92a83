//go:build apiserver

package backup

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

// TestChangedWithEachUpdate: where admission changes pods that are updated, the gate of a backup's pod cannot be removed.
// That is said in the API server's words and tried ever more slowly, and the backup is made, once, when it is over.
func TestChangedWithEachUpdate(t *testing.T) {
	s, ctx := standalone.NewStage(t, operator, does(nil)), context.Background()
	server := testkit.Server(t)
	server.Enforce(t, s.R.Namespace, testkit.AddsEnv)
	s.Must(s.Create(ctx, story(s.R)))
	s.GateStays(s.Ready(apply.ReasonRefused, func(ctx context.Context, r *testkit.Run) ([]metav1.Condition, error) {
		b, err := current(ctx, r)
		return b.Status.Conditions, err
	}).Message)
	server.Lift(t, s.R.Namespace, testkit.AddsEnv)
	s.Settled(nothingLeft(isReady(reasonComplete)))
	if starts := len(s.R.Kubelet.Starts()); starts != 1 {
		t.Errorf("%d starts", starts)
	}
}
