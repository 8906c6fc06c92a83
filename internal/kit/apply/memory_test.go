package apply

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func version(v string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", ResourceVersion: v}}
}

func TestMemoryTellsALateCacheFromAGoodOne(t *testing.T) {
	now := time.Unix(1000, 0)
	written := version("100")
	key := client.ObjectKeyFromObject(written)
	cases := map[string]struct {
		cached client.Object
		later  time.Duration
		behind bool
	}{
		"not there yet":          {cached: nil, behind: true},
		"older":                  {cached: version("99"), behind: true},
		"older, fewer digits":    {cached: version("9"), behind: true},
		"as written":             {cached: version("100")},
		"newer":                  {cached: version("1000")},
		"never comes: give up":   {cached: version("99"), later: MemoryLasts},
		"not comparable: go on":  {cached: version("abc")},
		"nearly given up: wait":  {cached: nil, later: MemoryLasts - 1, behind: true},
		"deleted since: give up": {cached: nil, later: MemoryLasts},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := now
			m := NewMemory(time.Now)
			m.now = func() time.Time { return clock }
			m.Note("Pod", written)
			clock = clock.Add(tc.later)
			wait, behind := m.Behind("Pod", key, tc.cached)
			if behind != tc.behind {
				t.Fatalf("Behind() = %v, want %v", behind, tc.behind)
			}
			if behind && wait != MemoryLasts-tc.later {
				t.Errorf("wait %v, want %v", wait, MemoryLasts-tc.later)
			}
			if !behind && len(m.notes) != 0 {
				t.Error("the write is still remembered")
			}
		})
	}
}

func TestMemoryTellsADeletedObjectFromItsSuccessor(t *testing.T) {
	deleted, successor := version("100"), version("200")
	deleted.UID, successor.UID = "one", "two"
	key := client.ObjectKeyFromObject(deleted)
	for name, tc := range map[string]struct {
		cached client.Object
		behind bool
	}{
		"still there":   {deleted, true},
		"gone":          {nil, false},
		"there is next": {successor, false},
	} {
		m := NewMemory(time.Now)
		m.NoteDeleted("Pod", deleted)
		if _, behind := m.Behind("Pod", key, tc.cached); behind != tc.behind {
			t.Errorf("%s: Behind() = %v, want %v", name, behind, tc.behind)
		}
	}
}

func TestMemoryKeepsKindsApart(t *testing.T) {
	m := NewMemory(time.Now)
	m.Note("Pod", version("100"))
	key := client.ObjectKeyFromObject(version(""))
	if _, behind := m.Behind("Service", key, nil); behind {
		t.Error("a Service is held up by a Pod")
	}
	m.Forget("Pod", key)
	if _, behind := m.Behind("Pod", key, nil); behind {
		t.Error("a forgotten write is remembered")
	}
}
