package apply

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestSoundIsOfOneVersionAndOneWish: only what was found to be as wanted is not compared
// again, and only with what was wanted then.
func TestSoundIsOfOneVersionAndOneWish(t *testing.T) {
	pod := func(uid types.UID, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	}
	want := []byte(`{"spec":{"nodeName":"n"}}`)
	s := NewSound()
	s.note(pod("a", "7"), want)
	for name, tc := range map[string]struct {
		seen client.Object
		want string
		is   bool
	}{
		"the same":        {pod("a", "7"), string(want), true},
		"a later version": {pod("a", "8"), string(want), false},
		"an earlier one":  {pod("a", "6"), string(want), false},
		"another wish":    {pod("a", "7"), `{"spec":{"nodeName":"m"}}`, false},
		"its metadata":    {&metav1.PartialObjectMetadata{ObjectMeta: pod("a", "7").ObjectMeta}, string(want), false},
		"a successor":     {pod("b", "7"), string(want), false},
		"not there":       {pod("", ""), string(want), false},
		"without version": {pod("a", ""), string(want), false},
	} {
		if got := s.is(tc.seen, []byte(tc.want)); got != tc.is {
			t.Errorf("%s: found to be as wanted: %v", name, got)
		}
	}
	s.note(pod("a", "8"), want)
	if s.is(pod("a", "7"), want) || !s.is(pod("a", "8"), want) {
		t.Error("it is not the last version that is remembered")
	}
}

// TestSoundForgets: it does not grow for ever, and what is not there is not remembered.
func TestSoundForgets(t *testing.T) {
	s, want := NewSound(), []byte("{}")
	for i := range mostSound + 1 {
		s.note(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i)), ResourceVersion: "1"}}, want)
	}
	if n := len(s.known); n > mostSound {
		t.Errorf("%d are remembered", n)
	}
	s = NewSound()
	s.note(&corev1.Pod{}, want)
	if len(s.known) != 0 {
		t.Error("an object that is not there is remembered")
	}
	var none *Sound
	none.note(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a", ResourceVersion: "1"}}, want)
	if none.is(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a", ResourceVersion: "1"}}, want) {
		t.Error("what remembers nothing remembers")
	}
}
