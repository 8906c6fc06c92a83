package restore

import (
	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/metrics"
)

var restores = metrics.Counter("fairlead_etcd_restores_total",
	"EtcdRestores that came to their end, by result: done, or failed, after which nothing is tried again.", "result")

// results are the ends of an EtcdRestore.
var results = map[v1beta2.RestorePhase]string{v1beta2.RestoreComplete: "done", v1beta2.RestoreFailed: "failed"}

func registerMetrics() error {
	for _, result := range results {
		restores.WithLabelValues(result)
	}
	return metrics.Register(restores)
}
