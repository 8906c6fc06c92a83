package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Board has a figure of each object of one or several kinds, of which K is the key, and says what
// they are together when somebody looks. It is safe for concurrent use.
type Board[K comparable, F any] struct {
	families []*Family
	sum      func(all map[K]F, say Say)

	mu  sync.Mutex
	all map[K]F
}

// Say gives a series of a family its value. Labels are in the order of the family's.
type Say func(f *Family, value float64, labels ...string)

// NewBoard makes the collector of these families, of which sum says the values. It is not asked
// while no object is known.
func NewBoard[K comparable, F any](sum func(all map[K]F, say Say), families ...*Family) *Board[K, F] {
	return &Board[K, F]{families: families, sum: sum, all: map[K]F{}}
}

// Note keeps the figure of an object, in place of the one of before.
func (b *Board[K, F]) Note(object K, figure F) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[object] = figure
}

// Change makes an object's figure from the one of before, which is the zero value if there is none.
// It must not take long.
func (b *Board[K, F]) Change(object K, change func(before F) F) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[object] = change(b.all[object])
}

// Forget drops the figure of an object that is gone.
func (b *Board[K, F]) Forget(object K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, object)
}

// Describe implements prometheus.Collector.
func (b *Board[K, F]) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range b.families {
		descs <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (b *Board[K, F]) Collect(series chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.all) > 0 {
		b.sum(b.all, func(f *Family, value float64, labels ...string) {
			series <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, value, labels...)
		})
	}
}

// Worst finds the object with the least value, such as the earliest time, among those that have
// one. It has a series only if there is one.
type Worst struct {
	// Greatest finds the one with the greatest value instead.
	Greatest bool

	found  bool
	object types.NamespacedName
	value  float64
}

// Note looks at an object's value. Of equal values the object that sorts first counts, so that the
// series does not change its name for nothing.
func (w *Worst) Note(object types.NamespacedName, value float64) {
	isWorse := value < w.value
	if w.Greatest {
		isWorse = value > w.value
	}
	if !w.found || isWorse || value == w.value && object.String() < w.object.String() {
		w.found, w.object, w.value = true, object, value
	}
}

// Say gives the family, which has the labels namespace and name, its only series.
func (w *Worst) Say(say Say, f *Family) {
	if w.found {
		say(f, w.value, w.object.Namespace, w.object.Name)
	}
}
