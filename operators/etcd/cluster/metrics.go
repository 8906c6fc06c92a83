package cluster

import "github.com/prometheus/client_golang/prometheus"

// Metrics have no label with an object's name: their number does not grow with the number of
// EtcdClusters.
var memberChanges = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "fairlead_etcd_member_requests_total",
	Help: "Changes that were requested from members of etcd and done, by kind: add, promote, remove, move leader, downgrade, defragment, compact, disarm.",
}, []string{"change"})

var collectors = []prometheus.Collector{memberChanges}
