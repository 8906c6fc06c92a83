package at

import (
	"github.com/prometheus/client_golang/prometheus"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/run"
)

// Metrics have no label with an object's name: their number does not grow with
// the number of Ats.
var (
	lateness = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "fairlead_at_lateness_seconds",
		Help:    "How much later than scheduled the first attempt was allowed to run.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600},
	}, []string{"group"})
	runs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_at_runs_total",
		Help: "Ats that finished, by phase: DONE, FAILED or MISSED.",
	}, []string{"group", "phase"})
)

// registerMetrics registers the metrics, with a zero for all that can happen to
// the Ats of a group, so that a first failure is an increase. It may be called
// more than once in a process.
func registerMetrics(group string) error {
	if err := run.Register(lateness, runs); err != nil {
		return err
	}
	lateness.WithLabelValues(group)
	for _, phase := range []atv1alpha1.Phase{atv1alpha1.Done, atv1alpha1.Failed, atv1alpha1.Missed} {
		runs.WithLabelValues(group, string(phase))
	}
	return nil
}
