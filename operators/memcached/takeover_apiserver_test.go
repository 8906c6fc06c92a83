//go:build apiserver

package memcached

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
	"example.com/fairlead/operators/memcached/objects"
)

// TestTakeOver: a Deployment that another operator made under this Memcached is taken
// over, and the effect on the cache is announced first.
func TestTakeOver(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	mc := story(s.R)
	mc.Spec.Size = new(int32(0))
	s.Must(s.Create(ctx, mc))
	s.settled("", 0)
	d, err := read(ctx, s.R, "cache", &appsv1.Deployment{})
	s.Must(err)
	s.Must(s.Delete(ctx, d))
	s.Eventually(func() error { return client.IgnoreAlreadyExists(s.Create(ctx, tutorialDeployment(mc))) })
	s.patch(`{"spec":{"size":1}}`)
	s.settled("memcached:1.6.18", 1)
}

// TestTakeOverStable: with identity Stable, the tutorial's Deployment is deleted when the
// stable servers are there, and that is announced first.
func TestTakeOverStable(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	s.Must(isForeignDeployment(nil, stable)(ctx, s.R))
	s.settled("memcached:1.6.18", 1)
	s.Eventually(func() error { return nothingLeft(0, 1, 0)(ctx, s.R) })
	s.Eventually(func() error {
		var events eventsv1.EventList
		if err := s.List(ctx, &events, client.InNamespace(s.R.Namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "ColdUpgrade" && strings.Contains(e.Note, "new servers start, with empty caches, and then the old ones go") {
				return nil
			}
		}
		return fmt.Errorf("no event ColdUpgrade among %d", len(events.Items))
	})
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
}

// TestTakeOverAtOnce: the first rollout of a Deployment that another operator made goes by this operator's strategy.
func TestTakeOverAtOnce(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	c, err := client.NewWithWatch(testkit.Server(t).Config, client.Options{Scheme: standalone.Scheme(Operator)})
	s.Must(err)
	w, err := c.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(s.R.Namespace))
	s.Must(err)
	defer w.Stop()
	s.Must(isForeignDeployment(func(d *appsv1.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	})(ctx, s.R))
	s.settled("memcached:1.6.18", 1)
	last, err := read(ctx, s.R, "cache", &appsv1.Deployment{})
	s.Must(err)
	for event := range w.ResultChan() {
		d, ok := event.Object.(*appsv1.Deployment)
		if !ok {
			t.Fatalf("the watch ended: %+v", event.Object)
		}
		if d.Spec.Template.Annotations[objects.RevisionAnnotation] != "" && d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
			t.Errorf("the operator's template is rolled out with strategy %s", d.Spec.Strategy.Type)
		}
		if d.ResourceVersion == last.ResourceVersion {
			break
		}
	}
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
}

// TestTakeOverOtherSelector: a Deployment whose selector is a part of the operator's keeps its pods until a user has
// deleted it.
func TestTakeOverOtherSelector(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	s.Must(isForeignDeployment(func(d *appsv1.Deployment) { delete(d.Spec.Selector.MatchLabels, objects.PodsOf) })(ctx, s.R))
	said := s.waitsFor(apply.ReasonRefused).Message
	if !strings.Contains(said, "field is immutable") || !strings.Contains(said, `delete Deployment "cache" with its pods`) {
		t.Errorf("it says %q", said)
	}
	d, err := read(ctx, s.R, "cache", &appsv1.Deployment{})
	s.Must(err)
	if d.Generation != 1 {
		t.Errorf("what was refused was changed: %+v", d.Spec)
	}
	s.Must(s.Delete(ctx, d))
	s.settled("memcached:1.6.18", 1)
}
