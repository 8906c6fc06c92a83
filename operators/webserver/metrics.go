package webserver

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics have no label with an object's name: their number does not grow with
// the number of WebServers.
var (
	rollbacks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_webserver_rollbacks_total",
		Help: "Rollouts that were rolled back, by reason.",
	}, []string{"reason"})
)
