package cluster

import (
	"errors"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// writeProblem reports a write that failed.
func writeProblem(failure error) *status.Problem {
	p := apply.Problem(failure, "EtcdCluster")
	if failed, ok := errors.AsType[*loop.WriteError](failure); ok && p.Reason == apply.ReasonRetrying {
		if _, isRequest := failed.Write.(loop.Call); isRequest {
			p.Message = "A request to etcd failed and is retried: " + status.Shortened(failure.Error())
		}
	}
	return p
}
