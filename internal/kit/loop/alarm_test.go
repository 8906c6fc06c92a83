package loop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestAlarmsRingInOrderWhenTheWallClockSaysSo(t *testing.T) {
	now := noon
	a := newAlarms(func() time.Time { return now })
	keyOf := func(i int) types.NamespacedName { return types.NamespacedName{Name: fmt.Sprint(i)} }
	for _, i := range []int{3, 1, 2, 5, 4} {
		a.set(keyOf(i), noon.Add(time.Duration(i)*time.Second))
	}
	a.set(keyOf(2), noon.Add(6*time.Second)) // moved
	a.set(keyOf(4), time.Time{})             // removed
	a.set(keyOf(9), time.Time{})             // never was there

	if due, sleep := a.Ring(); len(due) != 0 || sleep != time.Second {
		t.Fatalf("at the start ring() = %v, %v, want nothing for 1s", due, sleep)
	}
	now = noon.Add(time.Second - 1)
	if due, sleep := a.Ring(); len(due) != 0 || sleep != 1 {
		t.Fatalf("just before the first ring() = %v, %v, want nothing for 1ns", due, sleep)
	}
	now = noon.Add(5 * time.Second)
	if due, sleep := a.Ring(); !slices.Equal(due, []types.NamespacedName{keyOf(1), keyOf(3), keyOf(5)}) || sleep != time.Second {
		t.Fatalf("after five seconds ring() = %v, %v", due, sleep)
	}
	now = noon.Add(-24 * time.Hour) // the clock was set back
	if due, sleep := a.Ring(); len(due) != 0 || sleep != longestSleep {
		t.Fatalf("with the clock set back ring() = %v, %v, want nothing for %v", due, sleep, longestSleep)
	}
	now = noon.Add(24 * time.Hour)
	if due, _ := a.Ring(); !slices.Equal(due, []types.NamespacedName{keyOf(2)}) {
		t.Fatalf("at the end ring() = %v", due)
	}
	if len(a.byKey) != 0 || len(a.heap) != 0 {
		t.Errorf("%d and %d alarms are left", len(a.byKey), len(a.heap))
	}
}

func TestAlarmsSleepThroughFarOnes(t *testing.T) {
	a := newAlarms(func() time.Time { return noon })
	a.set(types.NamespacedName{Name: "far"}, time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))
	if due, sleep := a.Ring(); len(due) != 0 || sleep != longestSleep {
		t.Errorf("ring() = %v, %v, want nothing for %v", due, sleep, longestSleep)
	}
}
