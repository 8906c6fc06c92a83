//go:build apiserver

package at

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

// TestChangedWithEachUpdate: where admission changes pods that are updated, no gate can be removed. That is said in the
// API server's words and tried ever more slowly, and the command runs, once, when it is over.
func TestChangedWithEachUpdate(t *testing.T) {
	s, ctx := standalone.NewStage(t, Operator, func(*corev1.Pod) testkit.Outcome { return testkit.Succeeds(100 * time.Millisecond) }), context.Background()
	server := testkit.Server(t)
	server.Enforce(t, s.R.Namespace, testkit.AddsEnv)
	at := anAt(spec(func(s *atv1alpha1.AtSpec) { s.Schedule = "2021-09-09T07:05:59Z" }))
	at.Namespace, at.Name, at.UID, at.Status = s.R.Namespace, "at", "", atv1alpha1.AtStatus{}
	s.Must(s.Create(ctx, at))
	s.Eventually(func() error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(at), at); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(at.Status.Conditions, status.Ready)
		if ready == nil || !strings.Contains(ready.Message, "pod updates may not change fields") || !strings.Contains(ready.Message, "a policy or webhook of the cluster") {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	})
	s.Counter.Reset()
	time.Sleep(4 * time.Second)
	counts := s.Counter.Counts()
	if n := counts["update pods"] + counts["patch pods"]; n > 8 || len(s.R.Kubelet.Starts()) > 0 {
		t.Errorf("in 4 s the gate was tried to be removed %d times, and %d pods were started", n, len(s.R.Kubelet.Starts()))
	}
	server.Lift(t, s.R.Namespace, testkit.AddsEnv)
	s.Eventually(func() error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(at), at); err != nil || at.Status.Phase != atv1alpha1.Done {
			return fmt.Errorf("the At is %s %s (%w)", at.Status.Phase, at.Status.Reason, err)
		}
		return nil
	})
	if starts := len(s.R.Kubelet.Starts()); starts != 1 {
		t.Errorf("%d starts", starts)
	}
}
