package status

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestProblem: the first check that finds something counts, and only what can be retried leaves an object at work.
func TestProblem(t *testing.T) {
	none := func() *Problem { return nil }
	found := func(p Problem) func() *Problem { return func() *Problem { return &p } }
	worst, other := Problem{Reason: "Worst", Message: "it burns", Retriable: true}, Problem{Reason: "Other", Message: "it is off"}
	if p := First(none, none); p != nil {
		t.Errorf("%+v was found", p)
	}
	for name, tc := range map[string]struct {
		checks    []func() *Problem
		want      Problem
		is, isNot string
	}{
		"one that can be retried": {[]func() *Problem{none, found(worst), found(other)}, worst, Reconciling, Stalled},
		"one that cannot":         {[]func() *Problem{found(other), none, found(worst)}, other, Stalled, Reconciling},
	} {
		var list []metav1.Condition
		Conditions{List: &list}.MarkProblem(First(tc.checks...))
		ready := meta.FindStatusCondition(list, Ready)
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != tc.want.Reason || ready.Message != tc.want.Message {
			t.Errorf("%s: Ready is %+v", name, ready)
		}
		if !meta.IsStatusConditionTrue(list, tc.is) || meta.FindStatusCondition(list, tc.isNot) != nil {
			t.Errorf("%s: conditions %+v", name, list)
		}
	}
}
