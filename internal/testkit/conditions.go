package testkit

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// reported is the part of any object that speaks about its state.
type reported struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (r *reported) condition(name string) (metav1.Condition, bool) {
	for _, c := range r.Status.Conditions {
		if c.Type == name {
			return c, true
		}
	}
	return metav1.Condition{}, false
}

func (r *reported) isTrue(name string) bool {
	c, ok := r.condition(name)
	return ok && c.Status == metav1.ConditionTrue
}

// A rule holds for every version of every object, whatever its kind. It
// returns what is wrong, or nothing.
type rule func(*reported) string

// conditionRules are what kstatus, and so `kubectl wait`, Argo CD and Flux,
// rely on, and what makes conditions worth reading. A Ready=True of an older
// generation is not a lie as long as it says so; that happens after each edit.
var conditionRules = []rule{
	each(func(_ *reported, c metav1.Condition) string {
		return unless(c.Type != "", "has no type")
	}),
	func(r *reported) string {
		seen := map[string]bool{}
		for _, c := range r.Status.Conditions {
			if seen[c.Type] {
				return "condition " + c.Type + " is there twice"
			}
			seen[c.Type] = true
		}
		return ""
	},
	each(func(_ *reported, c metav1.Condition) string {
		known := c.Status == metav1.ConditionTrue || c.Status == metav1.ConditionFalse || c.Status == metav1.ConditionUnknown
		return unless(known, fmt.Sprintf("has status %q, not True, False or Unknown", c.Status))
	}),
	each(func(_ *reported, c metav1.Condition) string {
		return unless(camelCase.MatchString(c.Reason), fmt.Sprintf("has reason %q, not one word in CamelCase", c.Reason))
	}),
	each(func(_ *reported, c metav1.Condition) string {
		return unless(c.Status != metav1.ConditionFalse || c.Message != "", "is False and has no message")
	}),
	each(func(_ *reported, c metav1.Condition) string {
		return unless(c.Message == strings.TrimSpace(c.Message), fmt.Sprintf("has space around its message %q", c.Message))
	}),
	each(func(_ *reported, c metav1.Condition) string {
		return unless(!c.LastTransitionTime.IsZero(), "has no lastTransitionTime")
	}),
	each(func(r *reported, c metav1.Condition) string {
		return unless(c.ObservedGeneration <= r.Generation,
			fmt.Sprintf("observed generation %d, the object has only %d", c.ObservedGeneration, r.Generation))
	}),
	func(r *reported) string {
		return unless(r.Status.ObservedGeneration <= r.Generation,
			fmt.Sprintf("status.observedGeneration is %d, the object has only %d", r.Status.ObservedGeneration, r.Generation))
	},
	func(r *reported) string {
		ready, ok := r.condition("Ready")
		says := ok && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration > 0 && r.Status.ObservedGeneration > 0
		return unless(!says || ready.ObservedGeneration == r.Status.ObservedGeneration,
			fmt.Sprintf("Ready is True for generation %d, but status.observedGeneration claims %d", ready.ObservedGeneration, r.Status.ObservedGeneration))
	},
	func(r *reported) string {
		return unless(!r.isTrue("Ready") || !r.isTrue("Stalled"), "Ready and Stalled are both True")
	},
	func(r *reported) string {
		return unless(!r.isTrue("Ready") || !r.isTrue("Reconciling"), "Ready and Reconciling are both True")
	},
	func(r *reported) string {
		return unless(!r.isTrue("Stalled") || !r.isTrue("Reconciling"), "Stalled and Reconciling are both True")
	},
}

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// CheckConditions says what no object's status may ever say, of any kind, also
// not for a moment. An object without conditions has nothing to be wrong.
func CheckConditions(obj runtime.Object) error {
	r, err := readReported(obj)
	if err != nil {
		return err
	}
	var problems []error
	for _, rule := range conditionRules {
		if text := rule(r); text != "" {
			problems = append(problems, fmt.Errorf("%s %s: %s", r.Kind, r.Name, text))
		}
	}
	return errors.Join(problems...)
}

// CheckTransition says what no change of an object's status may do: forget a
// generation that it has seen, or move a condition's lastTransitionTime
// without a transition. Either is what an operator with an old view does when
// it writes status without the resource version that it saw.
func CheckTransition(before, after runtime.Object) error {
	old, err := readReported(before)
	if err != nil {
		return err
	}
	now, err := readReported(after)
	if err != nil {
		return err
	}
	var problems []error
	complain := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s %s: "+format, append([]any{now.Kind, now.Name}, args...)...))
	}
	if now.Status.ObservedGeneration < old.Status.ObservedGeneration {
		complain("status.observedGeneration went back from %d to %d", old.Status.ObservedGeneration, now.Status.ObservedGeneration)
	}
	for _, c := range now.Status.Conditions {
		was, ok := old.condition(c.Type)
		if !ok {
			continue
		}
		if c.ObservedGeneration < was.ObservedGeneration {
			complain("condition %s went back from generation %d to %d", c.Type, was.ObservedGeneration, c.ObservedGeneration)
		}
		moved := !c.LastTransitionTime.Equal(&was.LastTransitionTime)
		if moved && c.Status == was.Status {
			complain("condition %s stayed %s, but its lastTransitionTime moved from %s to %s",
				c.Type, c.Status, was.LastTransitionTime.UTC(), c.LastTransitionTime.UTC())
		}
	}
	return errors.Join(problems...)
}

func readReported(obj runtime.Object) (*reported, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	r := &reported{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, r); err != nil {
		return nil, fmt.Errorf("status is not of the usual form: %w", err)
	}
	if r.Kind == "" {
		r.Kind = fmt.Sprintf("%T", obj)
	}
	return r, nil
}

func each(check func(*reported, metav1.Condition) string) rule {
	return func(r *reported) string {
		var problems []string
		for _, c := range r.Status.Conditions {
			if text := check(r, c); text != "" {
				problems = append(problems, fmt.Sprintf("condition %s %s", c.Type, text))
			}
		}
		return strings.Join(problems, "; ")
	}
}

func unless(ok bool, text string) string {
	if ok {
		return ""
	}
	return text
}
