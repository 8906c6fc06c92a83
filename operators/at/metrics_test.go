package at

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/metrics"
	"example.com/fairlead/internal/testkit/series"
)

func TestFigures(t *testing.T) {
	const group = "at.example.com"
	scheduled := func(at time.Time) atOption {
		return func(a *atv1alpha1.At) { a.Status.ScheduledTime = &metav1.MicroTime{Time: at} }
	}
	past, longPast, future := time.Now().Add(-time.Minute), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	board := metrics.NewBoard(sum, ats, due, longestDue)
	note := func(name string, options ...atOption) {
		board.Note(figureKey{group, types.NamespacedName{Namespace: "default", Name: name}}, figureOf(anAt(options...)))
	}
	note("waits", scheduled(future))
	note("due", scheduled(past))
	note("longest", scheduled(longPast))
	note("suspended", scheduled(longPast.Add(-time.Hour)), spec(func(s *atv1alpha1.AtSpec) { s.Suspend = true }))
	note("again", scheduled(longPast.Add(-time.Hour)), func(a *atv1alpha1.At) { a.Status.Attempts = 1 })
	note("runs", scheduled(longPast.Add(-time.Hour)), func(a *atv1alpha1.At) { a.Status.Phase = atv1alpha1.Running })
	note("new")
	board.Note(figureKey{"cnat.programming-kubernetes.info", types.NamespacedName{Namespace: "default", Name: "other"}}, figureOf(anAt(scheduled(past))))

	got := series.Of(t, board)
	for _, want := range []string{
		`fairlead_ats{group="at.example.com",phase="PENDING"} 6`,
		`fairlead_ats{group="at.example.com",phase="RUNNING"} 1`,
		`fairlead_at_due{group="at.example.com"} 2`,
		fmt.Sprintf(`fairlead_at_due_timestamp_seconds{group="at.example.com",name="longest",namespace="default"} %s`,
			strconv.FormatFloat(float64(longPast.UnixMicro())/1e6, 'g', -1, 64)),
		fmt.Sprintf(`fairlead_at_due_timestamp_seconds{group="cnat.programming-kubernetes.info",name="other",namespace="default"} %s`,
			strconv.FormatFloat(float64(past.UnixMicro())/1e6, 'g', -1, 64)),
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
}

// TestUsualLateness: it is that of the latest runs, whatever single ones were like.
func TestUsualLateness(t *testing.T) {
	var l latest
	if got := l.usual(); got != 0 {
		t.Errorf("without a run: %s", got)
	}
	l.note(time.Hour)
	for range 200 {
		l.note(time.Second)
	}
	l.note(time.Hour)
	if got := l.usual(); got != time.Second {
		t.Errorf("%s, want 1 s", got)
	}
}
