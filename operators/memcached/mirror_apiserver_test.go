//go:build apiserver

package memcached

import (
	"context"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit"
)

// TestWarmBehindAMirror: in a cluster in which all images come from a mirror, servers are changed in their pods, as anywhere.
func TestWarmBehindAMirror(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	const mirror = "mirror.example.com/"
	testkit.Server(t).Enforce(t, s.R.Namespace, testkit.Mirror)
	s.Must(s.Create(ctx, story(s.R, size(2), warm)))
	s.settled(mirror+"memcached:1.6.18", 2)
	s.patch(`{"spec":{"threads":8}}`)
	s.settled(mirror+"memcached:1.6.18", 2)
	s.patch(`{"spec":{"version":"1.6.38"}}`)
	s.settled(mirror+"memcached:1.6.38", 2)
	if starts := serverStarts(s.R); starts != 2 {
		t.Errorf("%d pods of servers were started, want 2", starts)
	}
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
}
