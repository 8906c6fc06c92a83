package webserver

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metrics have no label with an object's name: their number does not grow with
// the number of WebServers.
var (
	rollbacks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_webserver_rollbacks_total",
		Help: "Rollouts that were rolled back, by reason.",
	}, []string{"reason"})
)

// registerMetrics may be called more than once in a process.
func registerMetrics() error {
	for _, collector := range []prometheus.Collector{rollbacks} {
		var registered prometheus.AlreadyRegisteredError
		if err := metrics.Registry.Register(collector); err != nil && !errors.As(err, &registered) {
			return err
		}
	}
	return nil
}
