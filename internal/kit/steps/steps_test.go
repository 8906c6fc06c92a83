package steps_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/kit/steps"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// step is that of a kind whose steps say something. Its object is a Pod, and known is what they say.
type step struct {
	steps.Step[corev1.PodStatus]
	said string
}

func (s *step) Add(next step) {
	s.Step.Add(next.Step)
	s.said += next.said
}

// says writes an object of the name that it says.
func says(_ *corev1.Pod, known string) (s step) {
	s.said = known
	s.Do(loop.Delete{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: known}}})
	return s
}

// remembers adds to what status has.
func remembers(pod *corev1.Pod, known string) (s step) {
	s.Remember(&pod.Status).Message += known
	s.Remember(&pod.Status).Reason = "Remembered"
	return s
}

func repeats(pod *corev1.Pod, _ string) step { return step{said: pod.Status.Message} }

func ends(*corev1.Pod, string) (s step) {
	s.IsLast = true
	return s
}

func fails(*corev1.Pod, string) (s step) {
	s.Err = errors.New("it cannot be said")
	return s
}

// TestTake: each step finds in status what the ones before have left there, and the last one ends it.
func TestTake(t *testing.T) {
	type table = []func(*corev1.Pod, string) step
	for name, tc := range map[string]struct {
		table  table
		said   string
		writes int
		status string
		fails  bool
	}{
		"none":                    {},
		"in order":                {table: table{says, repeats, says}, said: "aa", writes: 2},
		"what was remembered":     {table: table{repeats, remembers, repeats, remembers, repeats}, said: "aaa", status: "aa"},
		"the last":                {table: table{says, ends, says, remembers}, said: "a", writes: 1},
		"the last that remembers": {table: table{remembers, ends, says}, status: "a"},
		"one fails":               {table: table{says, fails, says}, said: "a", writes: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod, sum := &corev1.Pod{}, step{}
			steps.Take(&sum, tc.table, pod, "a", &pod.Status)
			isSame := sum.said == tc.said && len(sum.Writes) == tc.writes && pod.Status.Message == tc.status
			if !isSame || (sum.Err != nil) != tc.fails {
				t.Errorf("said %q, %d writes, status %q, error %v", sum.said, len(sum.Writes), pod.Status.Message, sum.Err)
			}
		})
	}
}

// TestAdd: what is added up of two steps.
func TestAdd(t *testing.T) {
	type is = steps.Step[corev1.PodStatus]
	problem := func(reason string) is { return is{Problem: &status.Problem{Reason: reason}} }
	in := func(after time.Duration) is { return is{WakeAfter: after} }
	plan := func(p loop.Plan) is { return is{Plan: p} }
	for name, tc := range map[string]struct{ first, second, want is }{
		"nothing":                     {},
		"the first problem stays":     {problem("A"), problem("B"), problem("A")},
		"a problem of the second":     {is{}, problem("B"), problem("B")},
		"the sooner is the later":     {in(time.Minute), in(time.Second), in(time.Second)},
		"the sooner is the first":     {in(time.Second), in(time.Minute), in(time.Second)},
		"never is not sooner":         {in(time.Second), is{}, in(time.Second)},
		"nor is what has been":        {in(time.Second), in(-time.Second), in(time.Second)},
		"the later claim":             {plan(loop.Plan{Claim: "a"}), plan(loop.Plan{Claim: "b"}), plan(loop.Plan{Claim: "b"})},
		"a claim stays":               {plan(loop.Plan{Claim: "a"}), is{}, plan(loop.Plan{Claim: "a"})},
		"again, once one says so":     {plan(loop.Plan{Again: true}), is{}, plan(loop.Plan{Again: true})},
		"status is not added":         {is{}, is{After: &corev1.PodStatus{}}, is{}},
		"that it was last is its own": {is{}, is{IsLast: true}, is{}},
		"an instant": {
			plan(loop.Plan{WakeAt: noon}),
			plan(loop.Plan{WakeAt: noon.Add(-time.Hour)}),
			plan(loop.Plan{WakeAt: noon.Add(-time.Hour)}),
		},
		"writes, and those after": {
			plan(loop.Plan{Writes: writes("a"), Then: writes("x")}),
			plan(loop.Plan{Writes: writes("b"), Then: writes("y")}),
			plan(loop.Plan{Writes: writes("a", "b"), Then: writes("x", "y")}),
		},
	} {
		tc.first.Add(tc.second)
		if diff := cmp.Diff(tc.want, tc.first); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func writes(names ...string) (all []loop.Write) {
	for _, name := range names {
		all = append(all, loop.Delete{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}})
	}
	return all
}

// TestProblems: what is reported ends by itself, and what stalls does not.
func TestProblems(t *testing.T) {
	var s step
	s.Report("Busy", "%d of %d", 1, 3)
	s.Stall("Wrong", "not reported")
	if want := (status.Problem{Reason: "Busy", Message: "1 of 3", Retriable: true}); *s.Problem != want {
		t.Errorf("reported: %+v, want %+v", *s.Problem, want)
	}
	s = step{}
	s.Stall("Wrong", "what %s", "it is")
	if want := (status.Problem{Reason: "Wrong", Message: "what it is"}); *s.Problem != want {
		t.Errorf("stalled: %+v, want %+v", *s.Problem, want)
	}
}
