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
	s.Must(isForeignDeployment(stable)(ctx, s.R))
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
