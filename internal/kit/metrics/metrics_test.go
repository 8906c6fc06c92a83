package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/internal/testkit/series"
)

var kind = schema.GroupKind{Group: "cache.example.com", Kind: "Memcached"}

func object(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

func condition(kind string, status metav1.ConditionStatus, reason string, since int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.Unix(since, 0)}
}

func TestObjects(t *testing.T) {
	o := &Objects{kinds: map[schema.GroupKind]*kindOfObjects{}}
	if got := series.Of(t, o); len(got) != 0 {
		t.Errorf("who knows no object says %v", got)
	}
	note := func(name string, conditions ...metav1.Condition) {
		o.Note(kind, object(name), conditions, []string{"Waiting"})
	}
	note("new")
	note("well", condition("Ready", "True", "AsRequested", 1), condition("Available", "True", "Serving", 1))
	note("waits", condition("Ready", "False", "Waiting", 2))
	note("mended", condition("Ready", "False", "Broken", 3))
	note("mended", condition("Available", "True", "Serving", 4), condition("Ready", "True", "AsRequested", 4))
	note("changing", condition("Ready", "Unknown", "ReadFailed", 5))
	note("gone", condition("Ready", "False", "Broken", 6))
	o.Forget(kind, object("gone"))
	o.Forget(kind, object("never there"))
	want := []string{
		`fairlead_object_problem{available="",group="cache.example.com",kind="Memcached",name="changing",namespace="default",reason="ReadFailed"} 5`,
		`fairlead_object_problems_omitted{group="cache.example.com",kind="Memcached"} 0`,
		`fairlead_objects{condition="Available",group="cache.example.com",kind="Memcached",status="True"} 2`,
		`fairlead_objects{condition="Ready",group="cache.example.com",kind="Memcached",status="False"} 1`,
		`fairlead_objects{condition="Ready",group="cache.example.com",kind="Memcached",status="True"} 2`,
		`fairlead_objects{condition="Ready",group="cache.example.com",kind="Memcached",status="Unknown"} 1`,
	}
	if got := series.Of(t, o); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// Of many that are in trouble, those that serve nobody have a name, then those that wait for
// their users, then those that have been so for longest.
func TestObjectsNamesTheWorst(t *testing.T) {
	o := &Objects{kinds: map[schema.GroupKind]*kindOfObjects{}}
	note := func(name string, since int64, more ...metav1.Condition) {
		o.Note(kind, object(name), append(more, condition("Ready", "False", "Broken", since)), nil)
	}
	for i := range MostProblems - 3 {
		note(fmt.Sprintf("long-%d", i), 10)
	}
	note("longer", 9)
	note("shorter", 11)
	note("shortest", 12)
	note("stalled", 20, condition("Stalled", "True", "Broken", 20))
	note("down", 30, condition("Available", "False", "Broken", 30))
	got := series.Of(t, o)
	has := func(name string) bool {
		return slices.ContainsFunc(got, func(series string) bool { return strings.Contains(series, `name="`+name+`"`) })
	}
	for name, want := range map[string]bool{"longer": true, "stalled": true, "down": true, "shorter": false, "shortest": false} {
		if has(name) != want {
			t.Errorf("%s has a series: %t", name, !want)
		}
	}
	if want := `fairlead_object_problems_omitted{group="cache.example.com",kind="Memcached"} 2`; !slices.Contains(got, want) {
		t.Errorf("no %q", want)
	}
}

func TestWorst(t *testing.T) {
	value := &Family{Name: "value"}
	for greatest, want := range map[bool]string{false: "b 1", true: "c 3"} {
		w := Worst{Greatest: greatest}
		w.Say(func(*Family, float64, ...string) { t.Error("a series of nothing") }, value)
		for _, object := range []types.NamespacedName{object("d"), object("b"), object("a"), object("e"), object("c")} {
			w.Note(object, map[string]float64{"a": 2, "b": 1, "c": 3, "d": 1, "e": 3}[object.Name])
		}
		w.Say(func(_ *Family, is float64, labels ...string) {
			if got := fmt.Sprint(labels[1], " ", is); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}, value)
	}
}

func TestBoardNamesTheWorst(t *testing.T) {
	age := &Family{Name: "age", Type: GaugeType, desc: prometheus.NewDesc("age", "Age.", []string{"namespace", "name"}, nil)}
	b := NewBoard(func(all map[types.NamespacedName]float64, say Say) {
		var worst Worst
		for object, value := range all {
			worst.Note(object, value)
		}
		worst.Say(say, age)
	}, age)
	for _, step := range []struct {
		do   func()
		want []string
	}{
		{func() {}, nil},
		{func() { b.Note(object("b"), 2); b.Note(object("c"), 2); b.Note(object("d"), 3) }, []string{`age{name="b",namespace="default"} 2`}},
		{func() { b.Forget(object("b")) }, []string{`age{name="c",namespace="default"} 2`}},
		{func() { b.Note(object("c"), 4) }, []string{`age{name="d",namespace="default"} 3`}},
		{func() { b.Change(object("d"), func(before float64) float64 { return before - 2 }) }, []string{`age{name="d",namespace="default"} 1`}},
		{func() { b.Change(object("e"), func(before float64) float64 { return before - 2 }) }, []string{`age{name="e",namespace="default"} -2`}},
		{func() { b.Forget(object("c")); b.Forget(object("d")); b.Forget(object("e")) }, nil},
	} {
		step.do()
		if got := series.Of(t, b); !slices.Equal(got, step.want) {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
}

// BenchmarkScrape is a scrape with 10,000 objects of which 1,000 are in trouble.
func BenchmarkScrape(b *testing.B) {
	o := &Objects{kinds: map[schema.GroupKind]*kindOfObjects{}}
	for i := range 10_000 {
		ready := condition("Ready", "True", "AsRequested", time.Now().Unix())
		if i%10 == 0 {
			ready = condition("Ready", "False", "Broken", int64(i))
		}
		o.Note(kind, object(fmt.Sprint(i)), []metav1.Condition{ready, condition("Available", "True", "Serving", 1)}, nil)
	}
	for b.Loop() {
		series.Of(b, o)
	}
}
