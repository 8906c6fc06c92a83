//go:build apiserver

package webserver

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
)

// scaleDeployment sets the replicas as an autoscaler does.
func scaleDeployment(s *stage, replicas int32) {
	s.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "web"}}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	s.Must(s.SubResource("scale").Update(context.Background(), d, client.WithSubResourceBody(scale)))
}

func hasReplicas(s *stage, want int32) func() error {
	return func() error {
		d, err := read(context.Background(), s.R, "web", &appsv1.Deployment{})
		if err == nil && *d.Spec.Replicas != want {
			err = fmt.Errorf("%d replicas, want %d", *d.Spec.Replicas, want)
		}
		return err
	}
}

// TestAutoscaling: the operator's own autoscaler sets the replicas, no other writer
// changes them back, and turning it on or off does not drop them to one.
func TestAutoscaling(t *testing.T) {
	t.Parallel()
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, story(s.R)))
	s.settled(reasonReady, "nginx:1")
	patch := func(text string) {
		s.Must(s.Patch(ctx, mustCurrent(s), client.RawPatch(types.MergePatchType, []byte(text))))
	}
	patch(`{"spec":{"replicas":3}}`)
	s.Within(5*time.Second, hasReplicas(s, 3))
	patch(`{"spec":{"autoscaling":{"minReplicas":2,"maxReplicas":5}}}`)
	s.Within(5*time.Second, func() error {
		_, err := read(ctx, s.R, "web", &autoscalingv2.HorizontalPodAutoscaler{})
		return err
	})
	s.Must(hasReplicas(s, 3)())
	scaleDeployment(s, 4)
	time.Sleep(500 * time.Millisecond)
	s.Must(hasReplicas(s, 4)())
	scaleDeployment(s, 0)
	s.Within(5*time.Second, hasReplicas(s, 2))
	scaleDeployment(s, 4)
	patch(`{"spec":{"image":"nginx:2"}}`)
	s.Within(10*time.Second, func() error {
		if ws := mustCurrent(s); ws.Status.LastGoodImage != "nginx:2" || ws.Status.DesiredReplicas != 4 {
			return fmt.Errorf("status %+v", ws.Status)
		}
		return nil
	})
	s.Must(hasReplicas(s, 4)())
	patch(`{"spec":{"autoscaling":null}}`)
	s.Within(5*time.Second, hasReplicas(s, 3))
	s.Within(20*time.Second, func() error { // never fewer pods than requested
		if ws := mustCurrent(s); ws.Status.ReadyReplicas != 3 {
			return fmt.Errorf("%d pods are ready", ws.Status.ReadyReplicas)
		}
		return nil
	})
	time.Sleep(500 * time.Millisecond)
	s.Must(s.Counter.Silence(ctx, time.Second))
}

// TestAnothersAutoscaler: an autoscaler that the operator does not own sets the replicas,
// too; kubectl scale of the Deployment without one is repaired.
func TestAnothersAutoscaler(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, story(s.R, func(*webv1.WebServer) {})))
	s.settled(reasonReady, "nginx:1")
	scaleDeployment(s, 2)
	s.Within(time.Second, hasReplicas(s, 1))

	another := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "theirs"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MaxReplicas:    5,
		},
	}
	s.Must(s.Create(ctx, another))
	scaleDeployment(s, 3)
	s.Within(20*time.Second, func() error {
		if ws := mustCurrent(s); ws.Status.ReadyReplicas != 3 || ws.Status.DesiredReplicas != 3 {
			return fmt.Errorf("status %+v", ws.Status)
		}
		return nil
	})
	s.Must(hasReplicas(s, 3)())
	time.Sleep(500 * time.Millisecond)
	s.Must(s.Counter.Silence(ctx, time.Second))

	// KEDA sets 0, which leaves no trace of who did it, and nothing else may change
	// that: neither time nor another change of the spec.
	scaleDeployment(s, 0)
	s.Within(10*time.Second, func() error {
		if ws := mustCurrent(s); ws.Status.DesiredReplicas != 0 {
			return fmt.Errorf("status %+v", ws.Status)
		}
		return nil
	})
	s.Must(s.Patch(ctx, mustCurrent(s), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"nginx:2"}}`))))
	s.Within(10*time.Second, func() error {
		d, err := read(ctx, s.R, "web", &appsv1.Deployment{})
		if err == nil && templateOf(d.Spec.Template).image() != "nginx:2" {
			err = errors.New("the Deployment has the old image")
		}
		return err
	})
	s.Must(s.Counter.Silence(ctx, time.Second))
	s.Must(hasReplicas(s, 0)())

	s.Must(s.Delete(ctx, another))
	s.Within(5*time.Second, hasReplicas(s, 1))
	s.settled(reasonReady, "nginx:2")
}

// TestAutoscalingWithoutARequest: the pods request no CPU to take a percentage of.
func TestAutoscalingWithoutARequest(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, story(s.R, func(ws *webv1.WebServer) {
		ws.Spec.Autoscaling = &webv1.AutoscalingSpec{MinReplicas: 1, MaxReplicas: 2, TargetCPUUtilizationPercentage: 80}
	})))
	s.waitsFor(reasonNoRequest)
	s.Must(s.Patch(ctx, mustCurrent(s), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"cpu":"10m"}}}}`))))
	s.settled(reasonReady, "nginx:1")
}
