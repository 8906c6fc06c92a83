//go:build apiserver

package webserver

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/kit/testkit"
	"example.com/fairlead/internal/kit/testkit/pace"
	"example.com/fairlead/internal/kit/testkit/standalone"
)

// stage is a namespace with an operator, and with pods that pretend to run.
type stage struct {
	*testing.T
	client.Client
	run     *testkit.Run
	counter *testkit.Counter
	// stop ends the operator; start has another one begin.
	stop, start func()
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageWith(t, nil)
}

// newStageWith has pods that do as they are told.
func newStageWith(t *testing.T, behave func(*corev1.Pod) testkit.Outcome) *stage {
	t.Helper()
	server := testkit.Server(t)
	ns := server.NewNamespace(t)
	c, err := client.NewWithWatch(server.Config, client.Options{Scheme: standalone.Scheme(Operator)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	kubelet, err := testkit.StartKubelet(ctx, server.Config, ns, behave)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, Client: c, run: &testkit.Run{Namespace: ns, Client: c, Kubelet: kubelet}, counter: &testkit.Counter{}}
	s.start = func() {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- standalone.Start(Operator)(ctx, s.counter.Wrap(server.Config), ns) }()
		s.stop = func() {
			cancel()
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the operator ended: %v", err)
			}
		}
	}
	s.start()
	t.Cleanup(func() {
		s.stop()
		cancel()
	})
	return s
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// within waits until check succeeds, and returns how long that took.
func (s *stage) within(limit time.Duration, check func() error) time.Duration {
	s.Helper()
	return pace.Eventually(s, limit, check)
}

func (s *stage) settled(reason, image string) {
	s.Helper()
	s.within(30*time.Second, func() error { return isReady(reason, image)(context.Background(), s.run) })
	time.Sleep(300 * time.Millisecond) // what is under way, such as an event
}

// waitsFor waits until the condition Ready has a reason, and returns it.
func (s *stage) waitsFor(reason string) *metav1.Condition {
	s.Helper()
	var ready *metav1.Condition
	s.within(20*time.Second, func() error {
		ws, err := current(context.Background(), s.run)
		if err != nil {
			return err
		}
		if ready = meta.FindStatusCondition(ws.Status.Conditions, status.Ready); ready == nil || ready.Reason != reason {
			return fmt.Errorf("Ready is %+v, want %s", ready, reason)
		}
		return nil
	})
	return ready
}

func mustCurrent(s *stage) *webv1.WebServer {
	ws, err := current(context.Background(), s.run)
	s.must(err)
	return ws
}

// patch changes the WebServer.
func (s *stage) patch(text string) {
	s.Helper()
	s.must(s.Patch(context.Background(), story(s.run), client.RawPatch(types.MergePatchType, []byte(text))))
}
