package at

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/metrics"
)

func TestFigures(t *testing.T) {
	const group = "at.example.com"
	scheduled := func(at time.Time) atOption {
		return func(a *atv1alpha1.At) { a.Status.ScheduledTime = &metav1.MicroTime{Time: at} }
	}
	past, longPast, future := time.Now().Add(-time.Minute), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	all := map[figureKey]figure{}
	note := func(name string, options ...atOption) {
		all[figureKey{group, types.NamespacedName{Namespace: "default", Name: name}}] = figureOf(anAt(options...))
	}
	note("waits", scheduled(future))
	note("due", scheduled(past))
	note("longest", scheduled(longPast))
	note("suspended", scheduled(longPast.Add(-time.Hour)), spec(func(s *atv1alpha1.AtSpec) { s.Suspend = true }))
	note("again", scheduled(longPast.Add(-time.Hour)), func(a *atv1alpha1.At) { a.Status.Attempts = 1 })
	note("runs", scheduled(longPast.Add(-time.Hour)), func(a *atv1alpha1.At) { a.Status.Phase = atv1alpha1.Running })
	note("new")

	got := map[string]float64{}
	sum(all, func(f *metrics.Family, value float64, labels ...string) {
		for _, label := range labels {
			f := f.Name + "/" + label
			got[f] = value
		}
	})
	for series, want := range map[string]float64{
		"fairlead_ats/PENDING":                      6,
		"fairlead_ats/RUNNING":                      1,
		"fairlead_at_due/at.example.com":            2,
		"fairlead_at_due_timestamp_seconds/longest": float64(longPast.UnixMicro()) / 1e6,
	} {
		if got[series] != want {
			t.Errorf("%s is %v, want %v", series, got[series], want)
		}
	}
}
