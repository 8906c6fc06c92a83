//go:build apiserver

package cluster

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

// TestChangedWithEachUpdate: where admission changes pods that are updated, no founder's gate can be removed. That is said
// in the API server's words and tried ever more slowly, and the founder starts, once, when it is over.
func TestChangedWithEachUpdate(t *testing.T) {
	s, ctx := standalone.NewStage(t, operator, func(*corev1.Pod) testkit.Outcome { return testkit.Stays() }), context.Background()
	server := testkit.Server(t)
	server.Enforce(t, s.R.Namespace, testkit.AddsEnv)
	s.Must(s.Create(ctx, story(s.R, size(1))))
	s.GateStays(s.Ready(apply.ReasonRefused, func(ctx context.Context, r *testkit.Run) ([]metav1.Condition, error) {
		ec, err := currently(ctx, r)
		return ec.Status.Conditions, err
	}).Message)
	server.Lift(t, s.R.Namespace, testkit.AddsEnv)
	s.Eventually(func() error {
		if starts := len(s.R.Kubelet.Starts()); starts != 1 {
			return fmt.Errorf("%d starts, want 1", starts)
		}
		return nil
	})
	// The figures of all clusters are the process's: other tests begin with none.
	s.Must(s.Delete(ctx, story(s.R, size(1))))
	s.Eventually(func() error {
		if n := testutil.CollectAndCount(figures); n > 0 {
			return fmt.Errorf("%d series are left of a cluster that is gone", n)
		}
		return nil
	})
}
