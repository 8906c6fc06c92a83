package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/reason"
)

// pauses has the user pause the cluster.
func (w *world) pauses() *world {
	w.ec.Spec.Paused = true
	return w
}

// answersLoss has the restore be the answer to a loss of quorum.
func (w *world) answersLoss() *world {
	w.ec.Status.Restoring.Name = ""
	return w
}

// TestPaused: of one that is paused, what does not serve is said, and that nothing does is announced, once.
func TestPaused(t *testing.T) {
	const outage = "its members are stopped, nothing serves until spec.paused is false; Available False"
	for name, tc := range map[string]struct {
		world *world
		// want is the reason of Ready with its message, and whether the cluster is available.
		want string
	}{
		"at rest":                       {healthy(anEtcd(), 1, 2, 3).pauses(), "Paused: spec.paused is true: nothing of the cluster is changed; Available True"},
		"a member is down":              {healthy(anEtcd(), 1, 2, 3).silences(3).pauses(), "Paused: spec.paused is true: nothing of the cluster is changed; member #3: it does not answer: timeout; Available True"},
		"a backup is being read":        {healthy(anEtcd(), 1, 2, 3).verifies().pauses(), "Paused: spec.paused is true: nothing of the cluster is changed; Available True"},
		"members are yet to be stopped": {healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched, serving).pauses(), `Paused: spec.paused is true: nothing of the cluster is changed, in the middle of EtcdRestore "mine"; Available True`},
		"members are stopped":           {healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched, serving).stops(1, 2, 3).pauses(), `PausedInRestore: Paused in the middle of EtcdRestore "mine": ` + outage},
		"members are stopped, to answer a loss": {healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched, serving).stops(1, 2, 3).answersLoss().pauses(),
			`PausedInRestore: Paused in the middle of the answer to the loss of quorum: ` + outage},
		"no Service leads to the seed": {healthy(anEtcd(), 1, 2, 3).stops(1, 2, 3).switched().unready(4).pauses(), `PausedInRestore: Paused in the middle of EtcdRestore "mine": ` + outage},
		"the seed serves":              {healthy(anEtcd(), 1, 2, 3).losesPod(1, 2, 3).switched().isMember().pauses(), `Paused: spec.paused is true: nothing of the cluster is changed, in the middle of EtcdRestore "mine"; Available True`},
	} {
		t.Run(name, func(t *testing.T) {
			after := tc.world.observed(t)
			ready := meta.FindStatusCondition(after.Status.Conditions, status.Ready)
			available := meta.FindStatusCondition(after.Status.Conditions, v1beta2.ConditionAvailable)
			got := strings.ReplaceAll(ready.Reason+": "+ready.Message+"; Available "+string(available.Status), tc.world.name(3), "#3")
			if got != tc.want {
				t.Errorf("it says\n%s, want\n%s", got, tc.want)
			}
			var warnings int
			for _, e := range announce(t.Context(), tc.world.ec, after) {
				if e.Type == corev1.EventTypeWarning && e.Reason == reason.PausedInRestore {
					warnings++
				}
			}
			if isOutage := ready.Reason == reason.PausedInRestore; isOutage != (warnings == 1) {
				t.Errorf("%d warnings", warnings)
			}
			if more := announce(t.Context(), after, after); len(more) > 0 {
				t.Errorf("once more: %v", more)
			}
		})
	}
}
