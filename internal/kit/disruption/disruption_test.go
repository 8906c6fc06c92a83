package disruption

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"example.com/fairlead/internal/kit/status"
)

// aBudget is a PodDisruptionBudget with a selector, which may be nil, of an owner of a kind, unless that is empty.
func aBudget(name, owner string, selector *metav1.LabelSelector) policyv1.PodDisruptionBudget {
	b := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
	if owner != "" {
		b.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "x", Controller: new(true)}}
	}
	return b
}

func having(labels map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels}
}

// TestSelecting: only budgets that select a pod of the object are others.
func TestSelecting(t *testing.T) {
	shop := map[string]string{"team": "shop"}
	pods := []corev1.Pod{{}, {ObjectMeta: metav1.ObjectMeta{Labels: shop}}}
	ending := aBudget("ending", "", having(shop))
	ending.DeletionTimestamp = &metav1.Time{}
	for name, tc := range map[string]struct {
		budgets []policyv1.PodDisruptionBudget
		want    []string
	}{
		"none":                    {},
		"its own, unowned":        {[]policyv1.PodDisruptionBudget{aBudget("web", "", having(shop))}, nil},
		"two":                     {[]policyv1.PodDisruptionBudget{aBudget("b", "", having(shop)), aBudget("a", "Other", having(shop))}, []string{"a", "b"}},
		"for other pods":          {[]policyv1.PodDisruptionBudget{aBudget("a", "", having(map[string]string{"team": "bank"}))}, nil},
		"for all pods":            {[]policyv1.PodDisruptionBudget{aBudget("a", "", &metav1.LabelSelector{})}, []string{"a"}},
		"for no pods":             {[]policyv1.PodDisruptionBudget{aBudget("a", "", nil)}, nil},
		"one that is about to go": {[]policyv1.PodDisruptionBudget{ending}, nil},
	} {
		if got := selecting(tc.budgets, "web", pods); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestNews: objects look again when a budget of others may select their pods, or does so no more.
func TestNews(t *testing.T) {
	own, foreign := aBudget("web", "WebServer", having(nil)), aBudget("a", "", having(nil))
	selectsOthers, counts := aBudget("a", "", having(map[string]string{"team": "shop"})), aBudget("a", "", having(nil))
	counts.Status.CurrentHealthy = 1
	disowned := aBudget("web", "", having(nil))
	p := news("WebServer")
	for name, tc := range map[string]struct{ got, want bool }{
		"its own is made":               {p.Create(event.CreateEvent{Object: &own}), false},
		"its own goes":                  {p.Delete(event.DeleteEvent{Object: &own}), false},
		"its own counts pods":           {p.Update(event.UpdateEvent{ObjectOld: &own, ObjectNew: &own}), false},
		"its own loses its owner":       {p.Update(event.UpdateEvent{ObjectOld: &own, ObjectNew: &disowned}), true},
		"another one is made":           {p.Create(event.CreateEvent{Object: &foreign}), true},
		"another one goes":              {p.Delete(event.DeleteEvent{Object: &foreign}), true},
		"another one counts pods":       {p.Update(event.UpdateEvent{ObjectOld: &foreign, ObjectNew: &counts}), false},
		"another one selects otherwise": {p.Update(event.UpdateEvent{ObjectOld: &foreign, ObjectNew: &selectsOthers}), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %t", name, tc.got)
		}
	}
}

// TestAnnounce: a second budget is an event once.
func TestAnnounce(t *testing.T) {
	ready := func(s metav1.ConditionStatus, others ...string) []metav1.Condition {
		return []metav1.Condition{{Type: status.Ready, Status: s, Message: "All pods are ready" + Sentence(others)}}
	}
	const note = `PodDisruptionBudget "a" selects pods of this object, too, and Kubernetes refuses every eviction of a pod that two budgets select, ` +
		`so no drain ends: delete it, or set spec.disruption.enabled to false`
	for name, tc := range map[string]struct {
		before, after []metav1.Condition
		want          string
	}{
		"none":             {nil, ready("True"), ""},
		"one from birth":   {nil, ready("True", "a"), note},
		"one comes":        {ready("True"), ready("True", "a"), note},
		"it stays":         {ready("True", "a"), ready("True", "a"), ""},
		"it goes":          {ready("True", "a"), ready("True"), ""},
		"another is first": {ready("True", "b"), ready("True", "a", "b"), note},
		"not ready":        {ready("True"), ready("False", "a"), ""},
	} {
		got := ""
		for _, e := range Announce(tc.before, tc.after) {
			if e.Reason != "SecondDisruptionBudget" || e.Type != corev1.EventTypeWarning {
				t.Errorf("%s: %+v", name, e)
			}
			got += e.Note
		}
		if got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
