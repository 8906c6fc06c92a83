package memcached

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics have no label with an object's name: their number does not grow with
// the number of Memcacheds.
var (
	serverChanges = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "fairlead_memcached_server_changes_total",
		Help: "Servers that were changed in place.",
	})
)
