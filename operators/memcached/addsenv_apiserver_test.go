//go:build apiserver

package memcached

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/testkit"
)

// TestChangedWithEachUpdate: where admission changes pods that are updated, no server can be changed in place. That is
// said in the API server's words and tried ever more slowly, no server is touched, and the change is made when it is over.
func TestChangedWithEachUpdate(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	s.Must(s.Create(ctx, story(s.R, warm, size(2))))
	s.settled("memcached:1.6.18", 2)
	server := testkit.Server(t)
	server.Enforce(t, s.R.Namespace, testkit.AddsEnv)
	before := serverStarts(s.R)
	s.patch(`{"spec":{"version":"1.6.38"}}`)
	said := s.waitsFor(apply.ReasonRefused).Message
	for _, words := range []string{"pod updates may not change fields", "a policy or webhook of the cluster"} {
		if !strings.Contains(said, words) {
			t.Errorf("it says %q, want %q", said, words)
		}
	}
	s.Counter.Reset()
	time.Sleep(4 * time.Second)
	if n := s.Counter.Counts()["patch pods"]; n > 4 || serverStarts(s.R) != before {
		t.Errorf("in 4 s the server was tried to be changed %d times, and %d servers were started", n, serverStarts(s.R)-before)
	}
	server.Lift(t, s.R.Namespace, testkit.AddsEnv)
	s.settled("memcached:1.6.38", 2)
}
