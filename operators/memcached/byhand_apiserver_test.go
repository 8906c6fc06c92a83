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

// TestImageByHand: the image of a running pod that another writer has changed is changed
// back, in the same pod.
func TestImageByHand(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]mcOption{"random": size(2), "stable": stable, "warm": warm} {
		t.Run(name, func(t *testing.T) {
			s, ctx := newStage(t, behaves), context.Background()
			s.Must(s.Create(ctx, story(s.R, size(2), option)))
			s.settled("memcached:1.6.18", 2)
			pods, err := servers(ctx, s.R)
			s.Must(err)
			pod := &pods[0]
			s.Must(s.Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"memcached","image":"memcached:1.6.38"}]}}`)), client.FieldOwner("somebody")))
			s.settled("memcached:1.6.18", 2)
			got, err := read(ctx, s.R, pod.Name, &corev1.Pod{})
			if err != nil || got.UID != pod.UID {
				t.Errorf("the pod was replaced (%v)", err)
			}
			s.Must(s.Counter.Silence(ctx, 2*time.Second))
		})
	}
}
