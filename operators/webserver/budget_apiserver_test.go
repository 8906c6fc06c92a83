//go:build apiserver

package webserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/status"
)

// TestSecondBudget: a PodDisruptionBudget of a user's is reported while there is the operator's, too, when it comes and
// when it begins to select the pods. It is never touched, and costs nothing at rest.
func TestSecondBudget(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, story(s.R, func(ws *webv1.WebServer) {
		ws.Spec.PodTemplate = &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "shop"}}}
	})))
	s.settled(reasonReady, "nginx:1")
	says := func(want bool) func() error {
		return func() error {
			ready := meta.FindStatusCondition(mustCurrent(s).Status.Conditions, status.Ready)
			if got := strings.Contains(ready.Message, `. PodDisruptionBudget "mine" selects pods`); got != want || ready.Status != metav1.ConditionTrue {
				return fmt.Errorf("Ready is %s: %s", ready.Status, ready.Message)
			}
			return nil
		}
	}
	mine := &policyv1.PodDisruptionBudget{}
	mine.Namespace, mine.Name = s.R.Namespace, "mine"
	mine.Spec.MaxUnavailable = new(intstr.FromInt32(1))
	mine.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "bank"}}
	s.Must(s.Create(ctx, mine))
	s.Must(s.Counter.Silence(ctx, time.Second))
	s.Must(says(false)())
	mine.Spec.Selector.MatchLabels["team"] = "shop"
	s.Must(s.Update(ctx, mine))
	s.Within(5*time.Second, says(true))
	s.settled(reasonReady, "nginx:1")
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
	var events eventsv1.EventList
	s.Must(s.List(ctx, &events, client.InNamespace(s.R.Namespace)))
	n := 0
	for _, event := range events.Items {
		if event.Reason == disruption.Reason {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d events, want 1: %+v", n, events.Items)
	}

	s.patch(`{"spec":{"disruption":{"enabled":false}}}`)
	s.Within(5*time.Second, says(false))
	own := func() error { _, err := read(ctx, s.R, "web", &policyv1.PodDisruptionBudget{}); return err }
	if err := own(); !apierrors.IsNotFound(err) {
		t.Errorf("the operator's budget: %v", err)
	}
	s.patch(`{"spec":{"disruption":{"enabled":true}}}`)
	s.Within(5*time.Second, says(true))
	s.Must(own())
	s.Must(s.Delete(ctx, mine))
	s.Within(5*time.Second, says(false))
}
