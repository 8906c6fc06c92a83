package webserver

import "example.com/fairlead/internal/kit/metrics"

var rollbacks = metrics.Counter("fairlead_webserver_rollbacks_total",
	"Rollouts that were rolled back, by reason.", "reason")
