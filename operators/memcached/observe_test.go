package memcached

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// server is an API server that has the Memcached at this generation.
type server struct {
	client.Reader
	generation int64
}

func (s server) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetGeneration(s.generation)
	return nil
}

// TestOldView: what was written for a later generation is not undone, if there
// is one.
func TestOldView(t *testing.T) {
	mc := aPool(stable)
	for name, tc := range map[string]struct {
		wrote string
		live  int64
		want  bool
	}{
		"of this generation":      {"1", 1, false},
		"of one before":           {"0", 1, false},
		"by 0.0.1":                {"", 1, false},
		"of a later one":          {"2", 2, true},
		"of one that there isn't": {"7", 1, false},
		"not a number":            {"x", 1, false},
	} {
		seen := somethingSeen(aStatefulSet(mc, func(s *appsv1.StatefulSet) { s.Annotations[generationAnnotation] = tc.wrote }))
		if err := isCurrent(context.Background(), server{generation: tc.live}, mc, seen); apierrors.IsConflict(err) != tc.want {
			t.Errorf("%s: %v, want a conflict: %v", name, err, tc.want)
		}
	}
	foreign := somethingSeen(aStatefulSet(mc, func(s *appsv1.StatefulSet) {
		s.Annotations[generationAnnotation], s.OwnerReferences = "2", nil
	}))
	if err := isCurrent(context.Background(), server{generation: 2}, mc, foreign); err != nil {
		t.Errorf("a StatefulSet with another owner: %v", err)
	}
}
