package cluster

import "example.com/fairlead/internal/kit/metrics"

var memberChanges = metrics.Counter("fairlead_etcd_member_requests_total",
	"Changes that were requested from members of etcd and done, by kind: add, promote, remove, move leader, downgrade, defragment, compact, disarm.",
	"change")
