package standalone

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/pace"
)

// patience is for how long something may take, in machine time.
const patience = 30 * time.Second

// Stage is a namespace with an operator, and with pods that pretend to run, for
// tests that are no story of a sweep.
type Stage struct {
	*testing.T
	client.Client
	// R is what the functions of a story take.
	R *testkit.Run
	// Counter has the requests of the operator.
	Counter *testkit.Counter
	// Stop ends the operator; Start has another one begin. It runs at first.
	Stop, Start func()
}

// NewStage starts an operator; see testkit.StartKubelet for behave. What is beside
// it, such as a controller that the tests' servers lack, ends with the test.
func NewStage(t *testing.T, operator run.Operator, behave func(*corev1.Pod) testkit.Outcome, beside ...func(context.Context, *testkit.Run)) *Stage {
	t.Helper()
	server := testkit.Server(t)
	ns := server.NewNamespace(t)
	c, err := client.NewWithWatch(server.Config, client.Options{Scheme: Scheme(operator)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	kubelet, err := testkit.StartKubelet(ctx, server.Config, ns, behave)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	s := &Stage{T: t, Client: c, R: &testkit.Run{Namespace: ns, Client: c, Kubelet: kubelet}, Counter: &testkit.Counter{}}
	for _, start := range beside {
		start(ctx, s.R)
	}
	s.Start = func() {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- Start(operator)(ctx, s.Counter.Wrap(server.Config), ns) }()
		s.Stop = func() {
			cancel()
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the operator ended: %v", err)
			}
		}
	}
	s.Start()
	t.Cleanup(func() {
		s.Stop()
		cancel()
	})
	return s
}

// Must ends the test if there is an error.
func (s *Stage) Must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Within waits until check succeeds, and returns how long that took.
func (s *Stage) Within(limit time.Duration, check func() error) time.Duration {
	s.Helper()
	return pace.Eventually(s, limit, check)
}

// Eventually is Within a time that is enough for anything.
func (s *Stage) Eventually(check func() error) {
	s.Helper()
	s.Within(patience, check)
}

// Settled waits until check succeeds, and for what is then still under way, such as
// an event.
func (s *Stage) Settled(check func(context.Context, *testkit.Run) error) {
	s.Helper()
	s.Eventually(func() error { return check(context.Background(), s.R) })
	time.Sleep(300 * time.Millisecond)
}

// Ready waits until the condition Ready has a reason, and returns it.
func (s *Stage) Ready(reason string, conditions func(context.Context, *testkit.Run) ([]metav1.Condition, error)) *metav1.Condition {
	s.Helper()
	var ready *metav1.Condition
	s.Eventually(func() error {
		list, err := conditions(context.Background(), s.R)
		if err != nil {
			return err
		}
		if ready = meta.FindStatusCondition(list, status.Ready); ready == nil || ready.Reason != reason {
			return fmt.Errorf("Ready is %+v, want %s", ready, reason)
		}
		return nil
	})
	return ready
}

// GateStays is for a cluster in which admission changes each update of a pod. It requires that what was said names that, in
// the API server's words, and what to look for; that the gate is tried to be removed ever more slowly; and that no pod starts.
func (s *Stage) GateStays(said string) {
	s.Helper()
	for _, words := range []string{"pod updates may not change fields", "a policy or webhook of the cluster"} {
		if !strings.Contains(said, words) {
			s.Errorf("it says %q, want %q", said, words)
		}
	}
	s.Counter.Reset()
	time.Sleep(4 * time.Second)
	if n := s.Counter.Counts()["patch pods"]; n > 4 || len(s.R.Kubelet.Starts()) > 0 {
		s.Errorf("in 4 s the gate was tried to be removed %d times, and %d pods were started", n, len(s.R.Kubelet.Starts()))
	}
}
