//go:build apiserver

package memcached

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestImageByHand: the image of a running pod that somebody has changed is
// changed back, in the same pod.
func TestImageByHand(t *testing.T) {
	for name, option := range map[string]mcOption{"random": size(2), "stable": stable, "warm": warm} {
		t.Run(name, func(t *testing.T) {
			s, ctx := newStage(t, behaves), context.Background()
			s.must(s.Create(ctx, story(s.run, size(2), option)))
			s.settled("memcached:1.6.18", 2)
			pods, err := servers(ctx, s.run)
			s.must(err)
			pod := &pods[0]
			s.must(s.Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"memcached","image":"memcached:1.6.38"}]}}`)), client.FieldOwner("somebody")))
			s.settled("memcached:1.6.18", 2)
			got, err := read(ctx, s.run, pod.Name, &corev1.Pod{})
			if err != nil || got.UID != pod.UID {
				t.Errorf("the pod was replaced (%v)", err)
			}
			s.must(s.counter.Silence(ctx, 2*time.Second))
		})
	}
}
