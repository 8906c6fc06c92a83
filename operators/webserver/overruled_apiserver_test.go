//go:build apiserver

package webserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
)

// TestOverruled: what admission makes of the Deployment is a condition beside Ready, and one event. It costs nothing at
// rest and no status when another operator starts, and it ends with the policy, at the next change.
func TestOverruled(t *testing.T) {
	t.Parallel()
	s, ctx, server := newStage(t), context.Background(), testkit.Server(t)
	server.Enforce(t, s.R.Namespace, testkit.LimitedTemplates)
	ws := story(s.R)
	ws.Spec.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	s.Must(s.Create(ctx, ws))
	s.settled(reasonReady, "nginx:1")
	overruled := func() *metav1.Condition {
		return meta.FindStatusCondition(mustCurrent(s).Status.Conditions, status.Overruled)
	}
	events := func() (notes []string) {
		var list eventsv1.EventList
		s.Must(s.List(ctx, &list, client.InNamespace(s.R.Namespace)))
		for _, e := range list.Items {
			if e.Reason == status.Overruled {
				notes = append(notes, fmt.Sprint(e.Note, e.Series))
			}
		}
		return notes
	}
	const fields = `Deployment web: spec.template.spec.containers[webserver].resources.limits.cpu`
	if c := overruled(); c == nil || c.Status != metav1.ConditionTrue || !strings.HasSuffix(c.Message, fields) {
		t.Fatalf("Overruled is %+v", c)
	}
	s.Must(s.Counter.Silence(ctx, 2*time.Second))

	version, noted := mustCurrent(s).ResourceVersion, events()
	s.Stop()
	s.Counter.Reset()
	s.Start()
	s.Eventually(func() error { // a start that takes its time is silent, too, until its last watch
		if s.Counter.Counts()["watch horizontalpodautoscalers"] == 0 {
			return errors.New("the operator has not begun")
		}
		return nil
	})
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
	if ws := mustCurrent(s); ws.ResourceVersion != version || !meta.IsStatusConditionTrue(ws.Status.Conditions, status.Ready) {
		t.Errorf("the status was written when the operator started: %+v", ws.Status.Conditions)
	}
	if again := events(); len(noted) != 1 || len(again) != 1 || noted[0] != again[0] {
		t.Errorf("events %q, and after another start %q", noted, again)
	}

	server.Lift(t, s.R.Namespace, testkit.LimitedTemplates)
	s.patch(`{"spec":{"image":"nginx:2"}}`)
	s.settled(reasonReady, "nginx:2")
	if c := overruled(); c != nil {
		t.Errorf("without the policy Overruled is %+v", c)
	}
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
}
