package webserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/metrics"
	"example.com/fairlead/internal/kit/pods"
)

var (
	rollouts = metrics.Counter("fairlead_webserver_rollouts_total",
		"Rollouts that have ended, the first one of a WebServer included, by result: done (the revision became healthy) or rolled_back. One that became healthy and crash-looped soon after is counted as both.", "result")
	rollbacks = metrics.Counter("fairlead_webserver_rollbacks_total",
		"Rollouts that were rolled back, by reason.", "reason")
	replicasByState = metrics.Gauge("fairlead_webserver_replicas",
		"Pods that there should be, by state: ready, or not_ready, which those that are missing are too.", "state")
)

// The results of a rollout.
const (
	resultDone       = "done"
	resultRolledBack = "rolled_back"
)

// rollbackReasons are those for which judge gives a rollout up.
var rollbackReasons = slices.Concat(pods.NoStartReasons, []string{
	reasonDeadline, reasonBadConfig, reasonRefusedPods, reasonEndedPods, reasonUnschedulable, crashLoop, pods.NoImage, pods.ContainerCreating, pods.NodeNotResponding,
})

// registerMetrics registers the metrics, with a zero for all that can happen, so that
// a first failure is an increase. It may be called more than once in a process.
func registerMetrics() error {
	if err := metrics.Register(rollouts, rollbacks, figures); err != nil {
		return err
	}
	for _, result := range []string{resultDone, resultRolledBack} {
		rollouts.WithLabelValues(result)
	}
	for _, reason := range rollbackReasons {
		rollbacks.WithLabelValues(reason)
	}
	return nil
}

// countRollout counts a rollout that a status, which was stored, says to have ended. A
// revision that is good again because a later one was rolled back has not been rolled out.
func countRollout(before, after *webv1.WebServer) {
	was, is := before.Status, after.Status
	switch {
	case is.FailedRollout != nil && !equality.Semantic.DeepEqual(was.FailedRollout, is.FailedRollout):
		rollouts.WithLabelValues(resultRolledBack).Inc()
		rollbacks.WithLabelValues(is.FailedRollout.Reason).Inc()
	case is.LastGoodRevision != was.LastGoodRevision && is.LastGoodRevision != "":
		rollouts.WithLabelValues(resultDone).Inc()
	}
}

// figures are those of all WebServers.
var figures = metrics.NewBoard(sum, replicasByState)

// figure is what counts of a WebServer.
type figure struct{ ready, notReady int32 }

// figureOf leaves out pods that are there beside those that there should be, during a
// rollout for example.
func figureOf(ws *webv1.WebServer) figure {
	ready := min(ws.Status.ReadyReplicas, ws.Status.DesiredReplicas)
	return figure{ready: ready, notReady: ws.Status.DesiredReplicas - ready}
}

func sum(all map[types.NamespacedName]figure, say metrics.Say) {
	var total figure
	for _, f := range all {
		total.ready += f.ready
		total.notReady += f.notReady
	}
	say(replicasByState, float64(total.ready), "ready")
	say(replicasByState, float64(total.notReady), "not_ready")
}
