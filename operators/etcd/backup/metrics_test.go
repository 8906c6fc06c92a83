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
	"example.com/fairlead/internal/testkit/series"
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
	had := figures // of the EtcdBackups of other tests
	figures = newFigures()
	defer func() { figures = had }()
	expect := func(want ...string) {
		t.Helper()
		if got := series.Of(t, figures); !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
	expect() // who knows no EtcdBackup has no figures
	for _, b := range all {
		noteFigure(b, observation{})
	}
	figures.Forget(at("gone"))
	expect(`fairlead_etcd_backup_due_timestamp_seconds{name="failing",namespace="default"} 160`, `fairlead_etcd_backup_failures 1`, `fairlead_etcd_backup_last_proof_timestamp_seconds{name="good",namespace="default"} 50`, `fairlead_etcd_backup_last_success_timestamp_seconds{name="failing",namespace="default"} 100`, `fairlead_etcd_backup_proof_due_timestamp_seconds{name="good",namespace="default"} 260`)
	noteFigure(named("failing", every(60), success(400)), observation{})
	expect(`fairlead_etcd_backup_due_timestamp_seconds{name="good",namespace="default"} 260`, `fairlead_etcd_backup_failures 0`, `fairlead_etcd_backup_last_proof_timestamp_seconds{name="good",namespace="default"} 50`, `fairlead_etcd_backup_last_success_timestamp_seconds{name="good",namespace="default"} 200`, `fairlead_etcd_backup_proof_due_timestamp_seconds{name="good",namespace="default"} 260`)
	figures.Forget(at("good"))
	expect(`fairlead_etcd_backup_due_timestamp_seconds{name="better",namespace="default"} 360`, `fairlead_etcd_backup_failures 0`, `fairlead_etcd_backup_last_success_timestamp_seconds{name="better",namespace="default"} 300`)
	for _, name := range []string{"better", "failing"} {
		figures.Forget(at(name))
	}
	expect(`fairlead_etcd_backup_failures 0`) // one that is made once, or paused, is never too old
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
		return func(b *v1beta2.EtcdBackup) { b.Status.LastBackup.Duration = &metav1.Duration{Duration: d} }
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

// sumOf is the sum of what a histogram has counted.
func sumOf(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	sum := 0.0
	for _, one := range series.Of(t, c) {
		if name, value, _ := strings.Cut(one, " "); strings.HasSuffix(name, "_sum") {
			if _, err := fmt.Sscan(value, &sum); err != nil {
				t.Fatal(err)
			}
		}
	}
	return sum
}
