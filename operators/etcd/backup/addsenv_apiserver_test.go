//go:build apiserver

package backup

import (
	"context"
	"strings"
	"testing"
	"time"

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
	said := s.Ready(apply.ReasonRefused, func(ctx context.Context, r *testkit.Run) ([]metav1.Condition, error) {
		b, err := current(ctx, r)
		return b.Status.Conditions, err
	}).Message
	for _, words := range []string{"pod updates may not change fields", "a policy or webhook of the cluster"} {
		if !strings.Contains(said, words) {
			t.Errorf("it says %q, want %q", said, words)
		}
	}
	s.Counter.Reset()
	time.Sleep(4 * time.Second)
	if n := s.Counter.Counts()["patch pods"]; n > 4 || len(s.R.Kubelet.Starts()) > 0 {
		t.Errorf("in 4 s the gate was tried to be removed %d times, and %d pods were started", n, len(s.R.Kubelet.Starts()))
	}
	server.Lift(t, s.R.Namespace, testkit.AddsEnv)
	s.Settled(nothingLeft(isReady(reasonComplete)))
	if starts := len(s.R.Kubelet.Starts()); starts != 1 {
		t.Errorf("%d starts", starts)
	}
}
