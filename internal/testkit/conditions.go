package testkit

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// reported is the part of any object that speaks about its state.
type reported struct {
	name               string
	generation         int64
	observedGeneration int64
	conditions         []metav1.Condition
}

// condition is nil if there is none of that type.
func (r *reported) condition(name string) *metav1.Condition {
	for i := range r.conditions {
		if r.conditions[i].Type == name {
			return &r.conditions[i]
		}
	}
	return nil
}

func (r *reported) isTrue(name string) bool {
	c := r.condition(name)
	return c != nil && c.Status == metav1.ConditionTrue
}

// A rule holds for every version of every object, whatever its kind. It
// returns what is wrong, or nothing. Simulations call it for millions of
// versions: text is made only for what is wrong.
type rule func(*reported) string

// conditionRules are what kstatus, and so `kubectl wait`, Argo CD and Flux,
// rely on, and what makes conditions worth reading. A Ready=True of an older
// generation is not a lie as long as it says so; that happens after each edit.
var conditionRules = []rule{
	each(func(_ *reported, c *metav1.Condition) string {
		return unless(c.Type != "", "has no type")
	}),
	func(r *reported) string {
		for i := range r.conditions {
			if c := &r.conditions[i]; r.condition(c.Type) != c {
				return "condition " + c.Type + " is there twice"
			}
		}
		return ""
	},
	each(func(_ *reported, c *metav1.Condition) string {
		switch c.Status {
		case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
			return ""
		default:
			return fmt.Sprintf("has status %q, not True, False or Unknown", c.Status)
		}
	}),
	each(func(_ *reported, c *metav1.Condition) string {
		if !isCamelCase(c.Reason) {
			return fmt.Sprintf("has reason %q, not one word in CamelCase", c.Reason)
		}
		return ""
	}),
	each(func(_ *reported, c *metav1.Condition) string {
		return unless(c.Status != metav1.ConditionFalse || c.Message != "", "is False and has no message")
	}),
	each(func(_ *reported, c *metav1.Condition) string {
		if c.Message != strings.TrimSpace(c.Message) {
			return fmt.Sprintf("has space around its message %q", c.Message)
		}
		return ""
	}),
	each(func(_ *reported, c *metav1.Condition) string {
		return unless(!c.LastTransitionTime.IsZero(), "has no lastTransitionTime")
	}),
	each(func(r *reported, c *metav1.Condition) string {
		if c.ObservedGeneration > r.generation {
			return fmt.Sprintf("observed generation %d, the object has only %d", c.ObservedGeneration, r.generation)
		}
		return ""
	}),
	func(r *reported) string {
		if r.observedGeneration > r.generation {
			return fmt.Sprintf("status.observedGeneration is %d, the object has only %d", r.observedGeneration, r.generation)
		}
		return ""
	},
	func(r *reported) string {
		ready := r.condition("Ready")
		says := ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration > 0 && r.observedGeneration > 0
		if says && ready.ObservedGeneration != r.observedGeneration {
			return fmt.Sprintf("Ready is True for generation %d, but status.observedGeneration claims %d", ready.ObservedGeneration, r.observedGeneration)
		}
		return ""
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
	each(func(_ *reported, c *metav1.Condition) string {
		return unless(c.Type != "Overruled" || c.Status == metav1.ConditionTrue && c.Message != "", "is there, and not True with a message")
	}),
}

// isCamelCase says whether a text is a capital letter and then letters and digits.
func isCamelCase(text string) bool {
	for i, c := range []byte(text) {
		isUpper := 'A' <= c && c <= 'Z'
		isOther := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !isUpper && (i == 0 || !isOther) {
			return false
		}
	}
	return text != ""
}

// CheckConditions says what no object's status may ever say, of any kind, also
// not for a moment. An object without conditions has nothing to be wrong.
func CheckConditions(obj runtime.Object) error {
	r, err := readReported(obj)
	if err != nil {
		return err
	}
	var problems []error
	for _, rule := range conditionRules {
		if text := rule(&r); text != "" {
			problems = append(problems, fmt.Errorf("%s %s: %s", kindOf(obj), r.name, text))
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
		problems = append(problems, fmt.Errorf("%s %s: "+format, append([]any{kindOf(after), now.name}, args...)...))
	}
	if now.observedGeneration < old.observedGeneration {
		complain("status.observedGeneration went back from %d to %d", old.observedGeneration, now.observedGeneration)
	}
	for i := range now.conditions {
		c := &now.conditions[i]
		was := old.condition(c.Type)
		if was == nil {
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

// BecameTrue says whether a condition is True in a version of an object, and was not in the one
// before, which is nil for the first.
func BecameTrue(before, after runtime.Object, condition string) bool {
	now, err := readReported(after)
	if err != nil || !now.isTrue(condition) {
		return false
	}
	if before == nil || reflect.ValueOf(before).IsNil() {
		return true
	}
	was, err := readReported(before)
	return err == nil && !was.isTrue(condition)
}

// readReported reads an object of a Go type without converting it: what its status does not
// have there, it does not report. Of others, the status has the fields that the API's
// conventions say.
func readReported(obj runtime.Object) (reported, error) {
	_, isUnstructured := obj.(runtime.Unstructured)
	meta, hasMeta := obj.(metav1.Object)
	if isUnstructured || !hasMeta {
		return convertReported(obj)
	}
	r := reported{name: meta.GetName(), generation: meta.GetGeneration()}
	v := reflect.ValueOf(obj).Elem()
	fields := statusFieldsOf(v.Type())
	if fields.observedGeneration != nil {
		r.observedGeneration = v.FieldByIndex(fields.observedGeneration).Int()
	}
	if fields.conditions != nil {
		r.conditions = *v.FieldByIndex(fields.conditions).Addr().Interface().(*[]metav1.Condition)
	}
	return r, nil
}

func convertReported(obj runtime.Object) (reported, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return reported{}, err
	}
	var object struct {
		metav1.ObjectMeta `json:"metadata"`
		Status            struct {
			ObservedGeneration int64              `json:"observedGeneration"`
			Conditions         []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &object); err != nil {
		return reported{}, fmt.Errorf("status is not of the usual form: %w", err)
	}
	return reported{
		name: object.Name, generation: object.Generation,
		observedGeneration: object.Status.ObservedGeneration, conditions: object.Status.Conditions,
	}, nil
}

// statusFields are where a Go type has what its objects report, and spec.suspend; nil for what it lacks.
type statusFields struct{ observedGeneration, conditions, phase, suspend []int }

// knownFields has the statusFields of types, because to find them takes long.
var knownFields sync.Map

func statusFieldsOf(t reflect.Type) *statusFields {
	if known, ok := knownFields.Load(t); ok {
		return known.(*statusFields)
	}
	fields := &statusFields{
		observedGeneration: indexOf(t, "Status", "ObservedGeneration", func(t reflect.Type) bool { return t.Kind() == reflect.Int64 }),
		conditions:         indexOf(t, "Status", "Conditions", func(t reflect.Type) bool { return t == reflect.TypeFor[[]metav1.Condition]() }),
		phase:              indexOf(t, "Status", "Phase", func(t reflect.Type) bool { return t.Kind() == reflect.String }),
		suspend:            indexOf(t, "Spec", "Suspend", func(t reflect.Type) bool { return t.Kind() == reflect.Bool }),
	}
	knownFields.Store(t, fields)
	return fields
}

// indexOf is the index of a field, if it is of such a type, in a struct in t.
func indexOf(t reflect.Type, outer, name string, is func(reflect.Type) bool) []int {
	part, ok := t.FieldByName(outer)
	if !ok || part.Type.Kind() != reflect.Struct {
		return nil
	}
	field, ok := part.Type.FieldByName(name)
	if !ok || !is(field.Type) {
		return nil
	}
	return slices.Concat(part.Index, field.Index)
}

// kindOf names an object's kind in a message. Clients leave it out of objects of Go types.
func kindOf(obj runtime.Object) string {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.Indirect(reflect.ValueOf(obj)).Type().Name()
}

func each(check func(*reported, *metav1.Condition) string) rule {
	return func(r *reported) string {
		var problems []string
		for i := range r.conditions {
			c := &r.conditions[i]
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
