package memcached

import "example.com/fairlead/internal/kit/metrics"

var serverChanges = metrics.Counter("fairlead_memcached_server_changes_total",
	"Servers that were changed in place.")
