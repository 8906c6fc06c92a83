//go:build apiserver

package webserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/pace"
)

// badImages has pods whose images cannot be pulled if they are called so.
func badImages(pod *corev1.Pod) testkit.Outcome {
	if strings.Contains(pod.Spec.Containers[0].Image, "bad") {
		return testkit.Stuck("ImagePullBackOff")
	}
	return testkit.Stays()
}

// rolloutDeadline is how long a rollout of a WebServer may take. It is the clock's time, chosen for a machine that
// was perhaps busier then than when it passes.
func rolloutDeadline(ws *webv1.WebServer) time.Duration {
	return time.Duration(ws.Spec.Rollout.DeadlineSeconds) * time.Second
}

// TestRollsBackAfterAScaleUp: the Deployment's own deadline never passes for an
// image that was set while there was no pod.
func TestRollsBackAfterAScaleUp(t *testing.T) {
	t.Parallel()
	s, ctx := newStageWith(t, badImages), context.Background()
	ws := story(s.R)
	ws.Spec.Rollout.DeadlineSeconds = int32(pace.Seconds(5))
	s.Must(s.Create(ctx, ws))
	s.settled(reasonReady, "nginx:1")
	s.patch(`{"spec":{"replicas":0}}`)
	s.Within(10*time.Second, hasReplicas(s, 0))
	s.patch(`{"spec":{"image":"nginx:bad"}}`)
	s.Within(10*time.Second, func() error {
		d, err := read(ctx, s.R, "web", &appsv1.Deployment{})
		if err == nil && (templateOf(d.Spec.Template).image() != "nginx:bad" || !isComplete(d)) {
			err = fmt.Errorf("Deployment %+v", d.Status)
		}
		return err
	})
	s.patch(`{"spec":{"replicas":1}}`)
	s.settled(reasonRolledBack, "nginx:1")
}

// TestTriesAgain: with another deadline, or when an annotation requests it, and not
// because of other replicas.
func TestTriesAgain(t *testing.T) {
	t.Parallel()
	s, ctx := newStageWith(t, badImages), context.Background()
	ws := story(s.R)
	ws.Spec.Rollout.DeadlineSeconds = int32(pace.Seconds(5))
	s.Must(s.Create(ctx, ws))
	s.settled(reasonReady, "nginx:1")
	s.patch(`{"spec":{"image":"nginx:bad"}}`)
	s.settled(reasonRolledBack, "nginx:1")
	tries := func() int {
		n := 0
		var list appsv1.ReplicaSetList
		s.Must(s.List(ctx, &list, client.InNamespace(s.R.Namespace)))
		for _, rs := range list.Items {
			if rs.Spec.Template.Spec.Containers[0].Image == "nginx:bad" {
				// Each time it is scaled up is a generation, and each time down.
				n += int(rs.Generation)
			}
		}
		return n
	}
	before := tries()
	s.patch(`{"spec":{"replicas":2}}`)
	s.Within(20*time.Second, func() error {
		ws := mustCurrent(s)
		if ready := meta.FindStatusCondition(ws.Status.Conditions, status.Ready); ws.Status.ReadyReplicas != 2 || ready.Reason != reasonRolledBack {
			return fmt.Errorf("%d are ready, %+v", ws.Status.ReadyReplicas, ready)
		}
		return nil
	})
	s.patch(`{"spec":{"replicas":1}}`)
	s.settled(reasonRolledBack, "nginx:1")
	if after := tries(); after != before {
		t.Error("it was tried again because of other replicas")
	}
	for _, again := range []string{fmt.Sprintf(`{"spec":{"rollout":{"deadlineSeconds":%d}}}`, ws.Spec.Rollout.DeadlineSeconds+1), `{"metadata":{"annotations":{"` + webv1.AnnotationRetry + `":"now"}}}`} {
		failed := mustCurrent(s).Status.FailedRollout.Time
		s.patch(again)
		s.Within(rolloutDeadline(ws)+patience, func() error {
			if now := mustCurrent(s).Status.FailedRollout; now == nil || !failed.Before(&now.Time) {
				return fmt.Errorf("it was not tried again: %+v", now)
			}
			return nil
		})
		s.settled(reasonRolledBack, "nginx:1")
	}
	s.Must(s.Counter.Silence(ctx, time.Second))
}

// TestAFixIsNotCondemned: a rollout failed while no operator ran, and the spec names an
// earlier image again. The Deployment then shows the deadline of the failed one for a
// moment.
func TestAFixIsNotCondemned(t *testing.T) {
	t.Parallel()
	s, ctx := newStageWith(t, badImages), context.Background()
	ws := story(s.R)
	ws.Spec.Rollout.DeadlineSeconds = int32(pace.Seconds(5))
	s.Must(s.Create(ctx, ws))
	s.settled(reasonReady, "nginx:1")
	s.patch(`{"spec":{"image":"nginx:2"}}`)
	s.settled(reasonReady, "nginx:2")
	s.patch(`{"spec":{"image":"nginx:bad"}}`)
	s.Within(10*time.Second, func() error {
		d, err := read(ctx, s.R, "web", &appsv1.Deployment{})
		if err == nil && templateOf(d.Spec.Template).image() != "nginx:bad" {
			err = errors.New("the Deployment has the old image")
		}
		return err
	})
	s.Stop()
	s.Within(rolloutDeadline(ws)+patience, func() error {
		d, err := read(ctx, s.R, "web", &appsv1.Deployment{})
		for _, c := range d.Status.Conditions {
			if c.Reason == "ProgressDeadlineExceeded" {
				return err
			}
		}
		return fmt.Errorf("Deployment %+v", d.Status)
	})
	s.patch(`{"spec":{"image":"nginx:1"}}`)
	s.Start()
	s.settled(reasonReady, "nginx:1")
	if failed := mustCurrent(s).Status.FailedRollout; failed != nil {
		t.Errorf("failed rollout %+v", failed)
	}
}

// TestACrashLoopIsOneMessage: the condition of a server that becomes ready and then is
// crash-looping does not go back and forth. It changes with each crash, has the program's
// words, and there is one event.
func TestACrashLoopIsOneMessage(t *testing.T) {
	outcome := testkit.Fails(1500*time.Millisecond, 1)
	outcome.InPlace = true
	outcome.Message = "nginx: [warn] the \"user\" directive makes no sense\nnginx: [emerg] no license\n"
	s, ctx := newStageWith(t, func(*corev1.Pod) testkit.Outcome { return outcome }), context.Background()
	s.Must(s.Create(ctx, story(s.R)))
	s.waitsFor(crashLoop)
	messages := map[string]bool{}
	s.Within(time.Minute, func() error {
		ready := meta.FindStatusCondition(mustCurrent(s).Status.Conditions, status.Ready)
		if ready.Reason != crashLoop || !strings.HasSuffix(ready.Message, "last with exit code 1: nginx: [emerg] no license") || strings.Contains(ready.Message, "[warn]") {
			t.Fatalf("Ready is %+v", ready)
		}
		messages[ready.Message] = true
		if len(messages) < 5 {
			return fmt.Errorf("messages %v", messages)
		}
		return nil
	})
	var events eventsv1.EventList
	s.Must(s.List(ctx, &events, client.InNamespace(s.R.Namespace)))
	n := 0
	for _, event := range events.Items {
		if event.Regarding.Kind == "WebServer" && event.Reason == crashLoop {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d events, want 1: %+v", n, events.Items)
	}
}

// TestPortOutOfRange: only the cluster knows its node ports.
func TestPortOutOfRange(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, story(s.R, func(ws *webv1.WebServer) { ws.Spec.Service = &webv1.ServiceSpec{NodePort: 80} })))
	if ready := s.waitsFor(reasonPortRange); !strings.Contains(ready.Message, "30000-32767") {
		t.Errorf("message %q", ready.Message)
	}
	s.patch(`{"spec":{"service":null}}`)
	s.settled(reasonReady, "nginx:1")
}
