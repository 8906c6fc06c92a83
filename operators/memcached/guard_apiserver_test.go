//go:build apiserver

package memcached

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/operators/memcached/objects"
)

// TestNoEvictionDuringRestart: from the write that restarts a server on, no other
// one can be evicted, and when all is over, one can.
func TestNoEvictionDuringRestart(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	evict := func(name string) error {
		return s.SubResource("eviction").Create(ctx, s.object(&corev1.Pod{}, name), &policyv1.Eviction{
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		})
	}
	s.Must(s.Create(ctx, story(s.R, warm, size(2))))
	s.settled("memcached:1.6.18", 2)
	s.Eventually(func() error { return evict("cache-0") })
	s.patch(`{"spec":{"version":"1.6.38"}}`)
	s.Eventually(func() error {
		pod, err := read(ctx, s.R, "cache-1", &corev1.Pod{})
		if err == nil && pod.Annotations[objects.ChangedAnnotation] == "" {
			err = errNotYet
		}
		return err
	})
	// The other one is next, so none may be evicted until that is over.
	if err := evict("cache-0"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("while cache-1 is restarted, cache-0 is evicted (%v)", err)
	}
	s.settled("memcached:1.6.38", 2)
	s.Must(restartedOnceEach(restartersOfRuns{}, s.R, "cache-0", "cache-1"))
	s.Eventually(func() error { return evict("cache-0") })
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
}

// TestEditDuringRestart: another edit right after the first one is announced with it, and
// restarts no server that is being restarted; the others do not wait.
func TestEditDuringRestart(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	s.Must(s.Create(ctx, story(s.R, warm, size(2))))
	s.settled("memcached:1.6.18", 2)
	s.patch(`{"spec":{"version":"1.6.38"}}`)
	s.Eventually(func() error {
		mc, err := current(ctx, s.R)
		if err == nil && mc.Status.Upgrade == nil {
			err = errNotYet
		}
		return err
	})
	s.patch(`{"spec":{"threads":2}}`)
	s.settled("memcached:1.6.38", 2)
	var events corev1.EventList
	s.Must(s.List(ctx, &events, client.InNamespace(s.R.Namespace)))
	last := ""
	for _, e := range events.Items {
		if e.Reason == "WarmUpgrade" && len(e.Message) > len(last) {
			last = e.Message
		}
	}
	const want = "image from memcached:1.6.18 to memcached:1.6.38, threads from 4 to 2: the servers are restarted one after the other, each with its cache"
	if last != want {
		t.Errorf("the event says %q, want %q", last, want)
	}
}
