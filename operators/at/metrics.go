package at

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/metrics"
)

var (
	lateness = metrics.Histogram("fairlead_at_lateness_seconds",
		"How much later than scheduled the first attempt was allowed to run.",
		[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}, "group")
	runs = metrics.Counter("fairlead_at_runs_total",
		"Ats that finished, by phase: DONE, FAILED or MISSED.", "group", "phase")
	ats = metrics.Gauge("fairlead_ats",
		"Ats by phase: PENDING, RUNNING, DONE, FAILED or MISSED.", "group", "phase")
	due = metrics.Gauge("fairlead_at_due",
		"Ats whose time has come and that have not begun to run.", "group")
	longestDue = metrics.Gauge("fairlead_at_due_timestamp_seconds",
		"The time for which the At of a group is scheduled that has waited longest beyond it.", "group", "namespace", "name")
)

// latest are the latenesses of the latest runs of this process, the oldest of which is replaced.
type latest struct {
	mu    sync.Mutex
	late  [64]time.Duration
	count int
}

func (l *latest) note(late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late[l.count%len(l.late)] = late
	l.count++
}

// usual is the median, so that a few runs that waited for an operator do not decide.
func (l *latest) usual() time.Duration {
	l.mu.Lock()
	known := slices.Clone(l.late[:min(l.count, len(l.late))])
	l.mu.Unlock()
	if len(known) == 0 {
		return 0
	}
	slices.Sort(known)
	return known[len(known)/2]
}

// figures are those of all Ats.
var figures = metrics.NewBoard(sum, ats, due, longestDue)

// figureKey tells apart the Ats of the two groups.
type figureKey struct {
	group string
	types.NamespacedName
}

// figure is what counts of an At.
type figure struct {
	phase atv1alpha1.Phase
	// at is when it is to run if it waits for that time, and zero if not.
	at time.Time
}

func figureOf(at *atv1alpha1.At) figure {
	f := figure{phase: at.Status.Phase}
	waits := f.phase == atv1alpha1.Pending || at.Status.PendingSince != nil
	if waits && !at.Spec.Suspend && at.Status.Attempts == 0 && at.Status.ScheduledTime != nil {
		f.at = at.Status.ScheduledTime.Time
	}
	return f
}

func sum(all map[figureKey]figure, say metrics.Say) {
	type series struct {
		group string
		phase atv1alpha1.Phase
	}
	counts, late, worst, now := map[series]int{}, map[string]int{}, map[string]*metrics.Worst{}, time.Now()
	for key, f := range all {
		late[key.group] += 0
		counts[series{key.group, f.phase}]++
		if !f.at.IsZero() && f.at.Before(now) {
			late[key.group]++
			if worst[key.group] == nil {
				worst[key.group] = &metrics.Worst{}
			}
			worst[key.group].Note(key.NamespacedName, float64(f.at.UnixMicro())/1e6)
		}
	}
	for s, count := range counts {
		say(ats, float64(count), s.group, string(s.phase))
	}
	for group, count := range late {
		say(due, float64(count), group)
	}
	for group, w := range worst {
		w.Say(func(f *metrics.Family, value float64, labels ...string) {
			say(f, value, append([]string{group}, labels...)...)
		}, longestDue)
	}
}

// finalPhases are the phases of an At that has finished.
var finalPhases = []atv1alpha1.Phase{atv1alpha1.Done, atv1alpha1.Failed, atv1alpha1.Missed}

// registerMetrics registers the metrics, with a zero for all that can happen to
// the Ats of a group, so that a first failure is an increase. It may be called
// more than once in a process.
func registerMetrics(group string) error {
	if err := metrics.Register(lateness, runs, figures); err != nil {
		return err
	}
	lateness.WithLabelValues(group)
	for _, phase := range finalPhases {
		runs.WithLabelValues(group, string(phase))
	}
	return nil
}
