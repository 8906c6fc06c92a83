package at

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// TestRefusalsAreOfOneGeneration: who changes an At, or makes a new one of the
// name, need not wait.
func TestRefusalsAreOfOneGeneration(t *testing.T) {
	r := newRefusals()
	r.note(anAt(), create, noon)
	for name, tc := range map[string]struct {
		at   *atv1alpha1.At
		want time.Time
	}{
		"the one that was refused": {anAt(), noon},
		"changed":                  {anAt(func(at *atv1alpha1.At) { at.Generation++ }), time.Time{}},
		"another of the name":      {anAt(func(at *atv1alpha1.At) { at.UID = "other" }), time.Time{}},
		"another":                  {anAt(func(at *atv1alpha1.At) { at.Name = "other" }), time.Time{}},
	} {
		if _, got := r.until(tc.at); !got.Equal(tc.want) {
			t.Errorf("%s: held back until %v, want %v", name, got, tc.want)
		}
	}
	r.forget(types.NamespacedName{Namespace: "default", Name: "sample"})
	if _, got := r.until(anAt()); !got.IsZero() {
		t.Errorf("forgotten, and held back until %v", got)
	}
}
