package run

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

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
		if err := metrics.Registry.Register(c); err != nil && !errors.As(err, &already) {
			return err
		}
		registered.Store(c, true)
	}
	return nil
}
