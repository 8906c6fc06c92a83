package testkit

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reporting is an object of generation 2 with this status.
func reporting(status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "x", "generation": int64(2)},
		"status":   status,
	}}
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
		"conditions that are no list": {map[string]any{"conditions": "none"}, "not of the usual form"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, CheckConditions(reporting(tc.status)), tc.want)
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
			expect(t, CheckTransition(reporting(saying([]any{})), reporting(tc.status)), tc.want)
		})
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
