package apply

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMemoryDeleted(t *testing.T) {
	pod := func(version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", ResourceVersion: version}}
	}
	key := types.NamespacedName{Namespace: "n", Name: "p"}
	cases := map[string]struct {
		written, gone string
		lateAnswer    bool // the write is answered after the event of the deletion
		behind        bool
	}{
		"deleted after the write":              {written: "5", gone: "6", behind: false},
		"written anew after that":              {written: "7", gone: "6", behind: true},
		"deleted after the write, late answer": {written: "5", gone: "6", lateAnswer: true, behind: false},
		"written anew, late answer":            {written: "7", gone: "6", lateAnswer: true, behind: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := NewMemory(time.Now)
			if !tc.lateAnswer {
				m.Note("Pod", pod(tc.written))
			}
			m.Deleted("Pod", pod(tc.gone))
			if tc.lateAnswer {
				m.Note("Pod", pod(tc.written))
			}
			if _, behind := m.Behind("Pod", key, nil); behind != tc.behind {
				t.Errorf("behind is %t, want %t", behind, tc.behind)
			}
		})
	}
}

// TestMemoryForgetsTheGone: what went long ago is not kept, and a namespace with many objects that ends takes no longer
// for each than one with few.
func TestMemoryForgetsTheGone(t *testing.T) {
	now := time.Now()
	m := NewMemory(func() time.Time { return now })
	most := 0
	for i := range 100_000 {
		now = now.Add(time.Millisecond)
		m.Deleted("Pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}})
		most = max(most, len(m.gone))
	}
	if want := 2 * int(MemoryLasts.Milliseconds()); most > want {
		t.Errorf("%d were remembered, of which no more than %d went lately", most, want)
	}
}

func BenchmarkDeleted(b *testing.B) {
	m := NewMemory(time.Now)
	for i := range b.N {
		m.Deleted("Pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}})
	}
}
