//go:build apiserver

package webserver

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

// stage is one with a WebServer on it.
type stage struct{ *standalone.Stage }

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageWith(t, nil)
}

// patience is for how long something may take that needs no deadline to pass, in machine time.
const patience = 20 * time.Second

// newStageWith has pods that do what behave says.
func newStageWith(t *testing.T, behave func(*corev1.Pod) testkit.Outcome) *stage {
	t.Helper()
	return &stage{standalone.NewStage(t, Operator, behave)}
}

// settled waits until the condition Ready has a reason, with pods of that image. What fails does so at the end of its
// deadline, which is to be added to the time that a test is ready to wait: see rolloutDeadline.
func (s *stage) settled(reason, image string) {
	s.Helper()
	if reason == reasonRolledBack {
		s.Within(patience+rolloutDeadline(mustCurrent(s)), func() error { return isReady(reason, image)(context.Background(), s.R) })
	}
	s.Settled(isReady(reason, image))
}

// waitsFor waits until the condition Ready has a reason, and returns it.
func (s *stage) waitsFor(reason string) *metav1.Condition {
	s.Helper()
	return s.Ready(reason, func(ctx context.Context, r *testkit.Run) ([]metav1.Condition, error) {
		ws, err := current(ctx, r)
		return ws.Status.Conditions, err
	})
}

func mustCurrent(s *stage) *webv1.WebServer {
	ws, err := current(context.Background(), s.R)
	s.Must(err)
	return ws
}

// patch changes the WebServer.
func (s *stage) patch(text string) {
	s.Helper()
	s.Must(s.Patch(context.Background(), story(s.R), client.RawPatch(types.MergePatchType, []byte(text))))
}
