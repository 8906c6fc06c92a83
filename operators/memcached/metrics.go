package memcached

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/metrics"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/change"
	"example.com/fairlead/operators/memcached/pool"
)

var (
	changes = metrics.Counter("fairlead_memcached_changes_total",
		"Changes of the servers that have ended, by kind (what they did to the cache: warm, cold or untouched) and result: done; superseded (the spec was edited before the end); or turned_cold (a change that was announced as another one could not keep the cache; the rest of it is a cold one).",
		"kind", "result")
	serversByState = metrics.Gauge("fairlead_memcached_servers",
		"Servers by state: ready (and clients find them), or not_ready, which those that are missing are too.", "state")
	atStake = metrics.Gauge("fairlead_memcached_servers_at_stake",
		"Servers whose items a cold change in progress will lose: those that it has not got to yet. Servers of another operator's that are being taken over are not counted.")
	longestChange = metrics.Gauge("fairlead_memcached_change_started_timestamp_seconds",
		"The Memcached whose warm change has been in progress for longest: since when it is not Ready (a Unix time), which is from the start of the change, or from an earlier problem.",
		"namespace", "name")
)

// The results of a change.
const (
	resultDone       = "done"
	resultSuperseded = "superseded"
	resultTurnedCold = "turned_cold"
)

// registerMetrics registers the metrics, with a zero for all that can happen, so that
// a first failure is an increase. It may be called more than once in a process.
func registerMetrics() error {
	if err := metrics.Register(changes, change.ServersChanged, figures); err != nil {
		return err
	}
	change.ServersChanged.WithLabelValues()
	for _, kind := range []v1alpha1.UpgradeKind{v1alpha1.Warm, v1alpha1.Cold, v1alpha1.Untouched} {
		for _, result := range []string{resultDone, resultSuperseded, resultTurnedCold} {
			if kind != v1alpha1.Cold || result != resultTurnedCold {
				changes.WithLabelValues(labelOf(kind), result)
			}
		}
	}
	return nil
}

func labelOf(kind v1alpha1.UpgradeKind) string { return strings.ToLower(string(kind)) }

// countChange counts a change that a status, which was stored, says to have ended.
func countChange(before, after *v1alpha1.Memcached) {
	if result := resultOf(before, after); result != "" {
		changes.WithLabelValues(labelOf(before.Status.Upgrade.Kind), result).Inc()
	}
}

// resultOf is how the change of before has ended; "" if there is none, or it goes on.
func resultOf(before, after *v1alpha1.Memcached) string {
	was, is := before.Status.Upgrade, after.Status.Upgrade
	switch {
	case was == nil:
		return ""
	case is == nil && !isWithdrawn(before, after):
		return resultDone
	case is == nil || is.Revision != was.Revision:
		return resultSuperseded
	case is.Kind != was.Kind && is.Kind == v1alpha1.Cold:
		return resultTurnedCold
	}
	return ""
}

// isWithdrawn says whether a change is over because of an edit: one that went back to
// what the servers have before the first was changed, or that stopped them all.
func isWithdrawn(before, after *v1alpha1.Memcached) bool {
	edited := before.Status.ObservedGeneration != after.Status.ObservedGeneration
	return edited && before.Status.Upgrade.Updated == 0 || *after.Spec.Size == 0
}

// figures are those of all Memcacheds.
var figures = metrics.NewBoard(sum, serversByState, atStake, longestChange)

// figure is what counts of a Memcached.
type figure struct {
	ready, notReady, atStake int32
	// warmSince is since when a warm change keeps it from being Ready; zero if none does.
	warmSince time.Time
}

func figureOf(mc *v1alpha1.Memcached, seen pool.Observation) figure {
	st := &mc.Status
	f := figure{ready: st.ReadyReplicas, notReady: max(st.Replicas, *mc.Spec.Size) - st.ReadyReplicas}
	if st.Upgrade == nil {
		return f
	}
	switch ready := meta.FindStatusCondition(st.Conditions, status.Ready); {
	case st.Upgrade.Kind == v1alpha1.Cold:
		if r, err := pool.RequestOf(mc, seen); err == nil { // an error is in status
			f.atStake = pool.YetToLose(r.Memcached, seen, r.Template)
		}
	case st.Upgrade.Kind == v1alpha1.Warm && ready != nil && ready.Status != metav1.ConditionTrue:
		f.warmSince = ready.LastTransitionTime.Time
	}
	return f
}

func sum(all map[types.NamespacedName]figure, say metrics.Say) {
	var total figure
	var worst metrics.Worst
	for mc, f := range all {
		total.ready += f.ready
		total.notReady += f.notReady
		total.atStake += f.atStake
		if !f.warmSince.IsZero() {
			worst.Note(mc, float64(f.warmSince.Unix()))
		}
	}
	say(serversByState, float64(total.ready), "ready")
	say(serversByState, float64(total.notReady), "not_ready")
	say(atStake, float64(total.atStake))
	worst.Say(say, longestChange)
}
