package at

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// TestPausesAreOfOneGeneration: who changes an At, or makes a new one of the
// name, need not wait.
func TestPausesAreOfOneGeneration(t *testing.T) {
	p := &pauses{}
	p.note(anAt(), noon)
	for name, tc := range map[string]struct {
		at   *atv1alpha1.At
		want time.Time
	}{
		"the one that waits":  {anAt(), noon},
		"changed":             {anAt(func(at *atv1alpha1.At) { at.Generation++ }), time.Time{}},
		"another of the name": {anAt(func(at *atv1alpha1.At) { at.UID = "other" }), time.Time{}},
		"another":             {anAt(func(at *atv1alpha1.At) { at.Name = "other" }), time.Time{}},
	} {
		if got := p.until(tc.at); !got.Equal(tc.want) {
			t.Errorf("%s: waits until %v, want %v", name, got, tc.want)
		}
	}
	p.Forget(types.NamespacedName{Namespace: "default", Name: "sample"})
	if got := p.until(anAt()); !got.IsZero() {
		t.Errorf("forgotten, and waits until %v", got)
	}
}
