package metrics

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Family is one metric with all its series.
type Family struct {
	Name, Type, Help string
	Labels           []string

	desc *prometheus.Desc
}

// The types of families.
const (
	CounterType   = "counter"
	GaugeType     = "gauge"
	HistogramType = "histogram"
)

// families are those that were made in this program, which is done while its packages are
// initialized.
var families []*Family

// Families are all that the packages of this program have made, by name.
func Families() []*Family {
	return slices.SortedFunc(slices.Values(families), func(a, b *Family) int { return cmp.Compare(a.Name, b.Name) })
}

func newFamily(kind, name, help string, labels []string) *Family {
	f := &Family{Name: name, Type: kind, Help: help, Labels: labels, desc: prometheus.NewDesc(name, help, labels, nil)}
	families = append(families, f)
	return f
}

// Counter makes a metric of what only grows while the process lives.
func Counter(name, help string, labels ...string) *prometheus.CounterVec {
	newFamily(CounterType, name, help, labels)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Histogram makes a metric of how values are distributed.
func Histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	newFamily(HistogramType, name, help, labels)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// Gauge makes a metric of which a [Board] says the values.
func Gauge(name, help string, labels ...string) *Family {
	return newFamily(GaugeType, name, help, labels)
}

// GaugeFunc makes a metric of one series, of which value says the value.
func GaugeFunc(name, help string, value func() float64) prometheus.GaugeFunc {
	newFamily(GaugeType, name, help, nil)
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

// registered are the collectors that are in the registry: it takes long to find out that
// it has one.
var registered sync.Map

// Register adds metrics to those that the process serves. It may be called more than once
// for each.
func Register(collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		if _, known := registered.Load(c); known {
			continue
		}
		var already prometheus.AlreadyRegisteredError
		if err := ctrlmetrics.Registry.Register(c); err != nil && !errors.As(err, &already) {
			return err
		}
		registered.Store(c, true)
	}
	return nil
}
