package testkit

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// reporting is an object of generation 2 with this status.
func reporting(status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "x", "generation": int64(2)},
		"status":   status,
	}}
}

// thing is such an object in a Go type.
type thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (t *thing) DeepCopyObject() runtime.Object {
	c := *t
	return &c
}

func typed(t testing.TB, o *unstructured.Unstructured) *thing {
	t.Helper()
	obj := &thing{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// saying is a status of these conditions, which are sound except for what the
// pairs of field and value change.
func saying(conditions ...[]any) map[string]any {
	var all []any
	for _, pairs := range conditions {
		c := map[string]any{
			"type": "Ready", "status": "True", "reason": "Done", "message": "all is well",
			"observedGeneration": int64(2), "lastTransitionTime": "2026-01-02T12:00:00Z",
		}
		for i := 0; i < len(pairs); i += 2 {
			c[pairs[i].(string)] = pairs[i+1]
		}
		all = append(all, c)
	}
	return map[string]any{"observedGeneration": int64(2), "conditions": all}
}

const unusual = "not of the usual form"

func TestCheckConditions(t *testing.T) {
	old := saying([]any{"observedGeneration", int64(1)})
	old["observedGeneration"] = int64(1)
	ahead := saying([]any{})
	ahead["observedGeneration"] = int64(3)

	cases := map[string]struct {
		status map[string]any
		want   string // part of the error
	}{
		"none":  {status: nil},
		"sound": {status: saying([]any{})},
		"ready for an old generation, and says so": {status: old},
		"no type":                     {saying([]any{"type", ""}), "has no type"},
		"twice":                       {saying([]any{}, []any{}), "condition Ready is there twice"},
		"other status":                {saying([]any{"status", "Yes"}), `status "Yes"`},
		"no reason":                   {saying([]any{"reason", ""}), "CamelCase"},
		"a sentence for a reason":     {saying([]any{"reason", "all done"}), "CamelCase"},
		"lower case":                  {saying([]any{"reason", "done"}), "CamelCase"},
		"false and silent":            {saying([]any{"status", "False", "message", ""}), "no message"},
		"trailing space":              {saying([]any{"message", "all is well\n"}), "space around its message"},
		"no time":                     {saying([]any{"lastTransitionTime", nil}), "no lastTransitionTime"},
		"ahead of the object":         {saying([]any{"observedGeneration", int64(3)}), "the object has only 2"},
		"status ahead of the object":  {ahead, "status.observedGeneration is 3"},
		"ready once, observed since":  {saying([]any{"observedGeneration", int64(1)}), "Ready is True for generation 1"},
		"ready and stalled":           {saying([]any{}, []any{"type", "Stalled"}), "Ready and Stalled"},
		"ready and reconciling":       {saying([]any{}, []any{"type", "Reconciling"}), "Ready and Reconciling"},
		"ready and not reconciling":   {status: saying([]any{}, []any{"type", "Reconciling", "status", "False"})},
		"stalled and reconciling":     {saying([]any{"type", "Stalled"}, []any{"type", "Reconciling"}), "Stalled and Reconciling"},
		"overruled beside ready":      {status: saying([]any{}, []any{"type", "Overruled"})},
		"not overruled":               {saying([]any{}, []any{"type", "Overruled", "status", "False"}), "Overruled is there, and not True"},
		"conditions that are no list": {map[string]any{"conditions": "none"}, unusual},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, CheckConditions(reporting(tc.status)), tc.want)
			if tc.want != unusual {
				expect(t, CheckConditions(typed(t, reporting(tc.status))), tc.want)
			}
		})
	}
}

func TestCheckTransition(t *testing.T) {
	later := metav1.Date(2026, 1, 2, 13, 0, 0, 0, time.UTC).Format(time.RFC3339)
	back := saying([]any{})
	back["observedGeneration"] = int64(1)

	cases := map[string]struct {
		status map[string]any
		want   string
	}{
		"no change":               {status: saying([]any{})},
		"a transition":            {status: saying([]any{"status", "False", "lastTransitionTime", later})},
		"gone":                    {status: saying()},
		"another message":         {status: saying([]any{"message", "still well"})},
		"time without transition": {saying([]any{"lastTransitionTime", later}), "stayed True, but its lastTransitionTime moved"},
		"condition's generation":  {saying([]any{"observedGeneration", int64(1)}), "went back from generation 2 to 1"},
		"status's generation":     {back, "status.observedGeneration went back from 2 to 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := reporting(saying([]any{})), reporting(tc.status)
			expect(t, CheckTransition(before, after), tc.want)
			expect(t, CheckTransition(typed(t, before), typed(t, after)), tc.want)
		})
	}
}

// A Go type whose status has neither field reports nothing; messages have its name all the
// same.
func TestCheckConditionsOfGoTypes(t *testing.T) {
	expect(t, CheckConditions(&corev1.ConfigMap{}), "")
	expect(t, CheckConditions(&corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{}}}}), "")
	wrong := typed(t, reporting(saying([]any{"reason", ""})))
	wrong.TypeMeta = metav1.TypeMeta{}
	expect(t, CheckConditions(wrong), "thing x: condition Ready has reason")
}

// BenchmarkCheckConditions is one version of an object with three conditions and the
// version before it.
func BenchmarkCheckConditions(b *testing.B) {
	status := saying([]any{}, []any{"type", "Reconciling", "status", "False"}, []any{"type", "Stalled", "status", "False"})
	before, after := typed(b, reporting(status)), typed(b, reporting(status))
	b.ReportAllocs()
	for b.Loop() {
		if CheckConditions(after) != nil || CheckTransition(before, after) != nil {
			b.Fatal("there is nothing wrong")
		}
	}
}

func expect(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unexpected: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want one with %q", err, want)
	}
}
