package backup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
)

// TestMetrics: each figure is of the EtcdBackup that is worst off, and says which that is.
func TestMetrics(t *testing.T) {
	named := func(name string, options ...option) *v1beta2.EtcdBackup {
		b := aBackup(options...)
		b.Name, b.CreationTimestamp = name, metav1.NewTime(time.Unix(50, 0))
		return b
	}
	success := func(at int64) option { return succeeded(time.Unix(at, 0)) }
	all := []*v1beta2.EtcdBackup{
		named("once", success(1)),
		named("paused", every(60), isPaused, success(2)),
		named("good", every(60), byRestore, success(200)),
		named("better", every(60), success(300)),
		named("failing", every(60), success(100), hasFailed(save, 3, noon)),
		named("gone", every(60), success(3)),
	}
	at := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: "default", Name: name}
	}
	expect := func(want ...string) {
		t.Helper()
		if got := gathered(t, figures); !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
	expect() // who knows no EtcdBackup has no figures
	for _, b := range all {
		noteFigure(b, observation{})
	}
	figures.Forget(at("gone"))
	expect("due_timestamp_seconds default failing 160", "failures 1", "last_proof_timestamp_seconds default good 50", "last_success_timestamp_seconds default failing 100")
	noteFigure(named("failing", every(60), success(400)), observation{})
	expect("due_timestamp_seconds default good 260", "failures 0", "last_proof_timestamp_seconds default good 50", "last_success_timestamp_seconds default good 200")
	figures.Forget(at("good"))
	expect("due_timestamp_seconds default better 360", "failures 0", "last_success_timestamp_seconds default better 300")
	for _, name := range []string{"better", "failing"} {
		figures.Forget(at(name))
	}
	expect("failures 0") // one that is made once, or paused, is never too old
	for _, name := range []string{"once", "paused"} {
		figures.Forget(at(name))
	}
	expect()
}

// TestDueAfter: a backup is due by the interval or the schedule after the last good one, whatever was tried since.
func TestDueAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		b    *v1beta2.EtcdBackup
		want time.Time
	}{
		"interval, the first":          {aBackup(every(60)), noon.Add(-time.Hour)},
		"interval":                     {aBackup(every(60), succeeded(noon)), noon.Add(time.Minute)},
		"interval, tries failed since": {aBackup(every(60), succeeded(noon), hasFailed(save, 3, noon.Add(time.Hour))), noon.Add(time.Minute)},
		"schedule, the first":          {aBackup(scheduled("30 11 * * *", "")), noon.Add(-30 * time.Minute)},
		"schedule, once a week":        {aBackup(scheduled("0 3 * * 1", ""), succeeded(noon)), noon.AddDate(0, 0, 3).Add(-9 * time.Hour)},
		"schedule in a time zone":      {aBackup(scheduled("0 14 * * *", "Europe/Berlin"), succeeded(noon)), noon.Add(time.Hour)},
		"schedule that is wrong":       {aBackup(scheduled("often", ""), succeeded(noon)), noon},
	} {
		t.Run(name, func(t *testing.T) {
			if got := figureOf(tc.b).due; !got.Equal(tc.want) {
				t.Errorf("due at %s, want %s", got, tc.want)
			}
		})
	}
}

// TestBackupsAreCounted: a backup counts once, when status has it, and not again after a restart.
func TestBackupsAreCounted(t *testing.T) {
	took := func(d time.Duration) option {
		return func(b *v1beta2.EtcdBackup) { b.Status.Last.Duration = &metav1.Duration{Duration: d} }
	}
	fails := hasFailed(save, 2, noon)
	for name, tc := range map[string]struct {
		before, after *v1beta2.EtcdBackup
		size, took    float64 // 0 if none counts
	}{
		"made":               {aBackup(), aBackup(made(1, noon), took(90*time.Second)), 4096, 90},
		"made again":         {aBackup(made(1, noon)), aBackup(made(2, noon), took(time.Minute)), 4096, 60},
		"of an older agent":  {aBackup(), aBackup(made(1, noon)), 4096, 0},
		"known":              {aBackup(made(1, noon), took(time.Minute)), aBackup(made(1, noon), took(time.Minute), runs(save)), 0, 0},
		"proved":             {aBackup(byRestore, made(1, noon), took(time.Minute)), aBackup(byRestore, made(1, noon), took(time.Minute), proved), 0, 0},
		"failed, with a one": {aBackup(made(1, noon), took(time.Minute)), aBackup(made(1, noon), took(time.Minute), fails), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sizes, durations := sumOf(t, size), sumOf(t, duration)
			announce(t.Context(), tc.before, tc.after)
			if got := sumOf(t, size) - sizes; got != tc.size {
				t.Errorf("a size of %v was counted, want %v", got, tc.size)
			}
			if got := sumOf(t, duration) - durations; got != tc.took {
				t.Errorf("a duration of %v was counted, want %v", got, tc.took)
			}
		})
	}
}

// gathered are the series of a collector, without the beginning of their names.
func gathered(t *testing.T, c prometheus.Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			words := []string{strings.TrimPrefix(f.GetName(), "fairlead_etcd_backup_")}
			labels := m.GetLabel() // by name
			slices.Reverse(labels) // namespace before name
			for _, l := range labels {
				words = append(words, l.GetValue())
			}
			value := m.GetGauge().GetValue()
			if h := m.GetHistogram(); h != nil {
				value = h.GetSampleSum()
			}
			all = append(all, strings.Join(append(words, fmt.Sprint(value)), " "))
		}
	}
	return all
}

// sumOf is the sum of what a histogram has counted.
func sumOf(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	sum := 0.0
	for _, series := range gathered(t, c) {
		if _, err := fmt.Sscan(series[strings.LastIndex(series, " ")+1:], &sum); err != nil {
			t.Fatal(err)
		}
	}
	return sum
}
