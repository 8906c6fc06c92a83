package apply

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestSound: only what was found to be as wanted is not compared again, and only with what
// was wanted then. Status is not compared at all.
func TestSound(t *testing.T) {
	want, other := sha256.Sum256([]byte("one")), sha256.Sum256([]byte("another"))
	pod := func(uid types.UID, version string, generation int64, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			UID: uid, ResourceVersion: version, Generation: generation,
			Labels: map[string]string{"a": "1"}, OwnerReferences: []metav1.OwnerReference{{UID: "owner", Controller: new(true)}},
		}}
		for _, f := range change {
			f(p)
		}
		return p
	}
	s := NewSound()
	s.note(pod("a", "7", 0), want, nil)
	s.note(pod("g", "7", 2), want, nil)
	for name, tc := range map[string]struct {
		seen client.Object
		want [sha256.Size]byte
		is   bool
	}{
		"the same":                {pod("a", "7", 0), want, true},
		"a later version":         {pod("a", "8", 0), want, false},
		"an earlier one":          {pod("a", "6", 0), want, false},
		"another wish":            {pod("a", "7", 0), other, false},
		"its metadata":            {&metav1.PartialObjectMetadata{ObjectMeta: pod("a", "7", 0).ObjectMeta}, want, false},
		"a successor":             {pod("b", "7", 0), want, false},
		"not there":               {pod("", "", 0), want, false},
		"without version":         {pod("a", "", 0), want, false},
		"another status":          {pod("g", "8", 2), want, true},
		"a later generation":      {pod("g", "8", 3), want, false},
		"another wish than then":  {pod("g", "8", 2), other, false},
		"another label":           {pod("g", "8", 2, func(p *corev1.Pod) { p.Labels["a"] = "2" }), want, false},
		"no label":                {pod("g", "8", 2, func(p *corev1.Pod) { p.Labels = nil }), want, false},
		"another annotation":      {pod("g", "8", 2, func(p *corev1.Pod) { p.Annotations = map[string]string{"b": ""} }), want, false},
		"not controlled any more": {pod("g", "8", 2, func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }), want, false},
		"without owner":           {pod("g", "8", 2, func(p *corev1.Pod) { p.OwnerReferences = nil }), want, false},
	} {
		if _, got := s.is(tc.seen, tc.want); got != tc.is {
			t.Errorf("%s: found to be as wanted: %v", name, got)
		}
	}
	s.note(pod("a", "8", 0), want, []string{"spec.x"})
	_, isEarlier := s.is(pod("a", "7", 0), want)
	if overruled, is := s.is(pod("a", "8", 0), want); isEarlier || !is || !slices.Equal(overruled, []string{"spec.x"}) {
		t.Errorf("it is not the last version that is remembered: %v, %v, %v", isEarlier, is, overruled)
	}
}

// TestSoundForgets: it does not grow for ever, and what is not there is not remembered.
func TestSoundForgets(t *testing.T) {
	s, want := NewSound(), sha256.Sum256([]byte("{}"))
	for i := range mostSound + 1 {
		s.note(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i)), ResourceVersion: "1"}}, want, nil)
	}
	if n := len(s.known); n > mostSound {
		t.Errorf("%d are remembered", n)
	}
	s = NewSound()
	s.note(&corev1.Pod{}, want, nil)
	if len(s.known) != 0 {
		t.Error("an object that is not there is remembered")
	}
	var none *Sound
	none.note(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a", ResourceVersion: "1"}}, want, nil)
	if _, is := none.is(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a", ResourceVersion: "1"}}, want); is {
		t.Error("what remembers nothing remembers")
	}
}
