package memcached

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metrics have no label with an object's name: their number does not grow with
// the number of Memcacheds.
var (
	serverChanges = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "fairlead_memcached_server_changes_total",
		Help: "Servers that were changed in place.",
	})
)

// registerMetrics may be called more than once in a process.
func registerMetrics() error {
	for _, collector := range []prometheus.Collector{serverChanges} {
		var registered prometheus.AlreadyRegisteredError
		if err := metrics.Registry.Register(collector); err != nil && !errors.As(err, &registered) {
			return err
		}
	}
	return nil
}
