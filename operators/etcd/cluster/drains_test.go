package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/session"
)

// TestDrainWaits: where a drain waits for what does not come by itself, Ready says so, and an event, once.
func TestDrainWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		world *world
		want  string
	}{
		"all serve": {healthy(anEtcd(), 1, 2, 3).cordons(2).areReady(1, 2, 3), ""},
		"another's node is away": {healthy(anEtcd(), 1, 2, 3).cordons(2).areReady(1, 2, 3).silences(3).nodeIsAway(3),
			"A drain of node node-2 does not take pod #2 until member #3 serves"},
		"its pod is being deleted": {healthy(anEtcd(), 1, 2, 3).cordons(2).areReady(1, 2, 3).silences(3).nodeIsAway(3).ends(3),
			"A drain of node node-2 does not take pod #2 until member #3 serves"},
		"another does not answer, unnoticed": {healthy(anEtcd(), 1, 2, 3).cordons(2).areReady(1, 2, 3).silences(3),
			"A drain of node node-2 does not take pod #2 until member #3 serves"},
		"another is starting":           {healthy(anEtcd(), 1, 2, 3).cordons(2).areReady(1, 2).starts(3), ""},
		"another has just been evicted": {healthy(anEtcd(onVolumes), 1, 2, 3).cordons(2).movable().areReady(1, 2).silences(3).ends(3), ""},
		"another's data is lost":        {healthy(anEtcd(), 1, 2, 3).cordons(2).areReady(1, 2, 3).loses(3), ""},
		"volumes can follow, two of three": {healthy(anEtcd(onVolumes), 1, 2, 3).cordons(2).movable().areReady(1, 2).silences(3).nodeIsAway(3),
			"A drain of node node-2 does not take pod #2 until member #3 serves"},
		"volumes can follow, four of five": {healthy(anEtcd(onVolumes, size(5)), 1, 2, 3, 4, 5).cordons(2).movable().areReady(1, 2, 4, 5).silences(3).nodeIsAway(3), ""},
		"the one in its place cannot be scheduled": {healthy(anEtcd(), 1, 2, 3, 4).learns(4).cordons(2).areReady(1, 2, 3).silences(4).unschedulable(4, "0/3 nodes are available"),
			"A drain of node node-2 does not take pod #2 until member #4 serves"},
		"paused": {healthy(anEtcd(), 1, 2, 3).cordons(2).areReady(1, 2, 3).silences(3).nodeIsAway(3).pauses(),
			"A drain of node node-2 does not take pod #2 until member #3 serves"},
		"no node is cordoned": {healthy(anEtcd(), 1, 2, 3).cordons().areReady(1, 2, 3).silences(3), ""},
		"nodes are not seen":  {healthy(anEtcd(), 1, 2, 3).areReady(1, 2, 3).silences(3), ""},
		"there is no budget":  {healthy(anEtcd(unbudgeted), 1, 2, 3).cordons(2).areReady(1, 2, 3).silences(3), ""},

		"a pod that does not serve, without a volume": {healthy(anEtcd(alone), 1).cordons(1).silences(1).unready(1),
			"A drain of node node-1 does not evict pod #1, as too few others are ready, and its data is nowhere else: delete it if that may go"},
		"the only one, with a volume": {healthy(anEtcd(alone, onVolumes), 1).cordons(1).silences(1).unready(1), ""},
		"two of three that do not serve, with volumes": {healthy(anEtcd(onVolumes), 1, 2, 3).cordons(3).movable().silences(2, 3).unready(2, 3).areReady(1),
			"A drain of node node-3 does not evict pod #3, as too few others are ready, delete it if the drain is to go on: its volume stays"},
		"one of three that does not serve": {healthy(anEtcd(), 1, 2, 3).cordons(3).silences(3).unready(3).areReady(1, 2), ""},
		"its node takes pods":              {healthy(anEtcd(alone), 1).cordons().silences(1).unready(1), ""},
		"it is alone, without a budget":    {healthy(anEtcd(alone, unbudgeted), 1).cordons(1).silences(1).unready(1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			after := tc.world.observed(t)
			var got []string
			for _, e := range announce(t.Context(), tc.world.ec, after) {
				if e.Reason == "DrainWaits" && e.Type == corev1.EventTypeWarning {
					got = append(got, tc.world.numbered(e.Note))
				}
			}
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("the event says %q, want %q", got, tc.want)
			}
			ready := tc.world.numbered(meta.FindStatusCondition(after.Status.Conditions, status.Ready).Message)
			if is := strings.Contains(ready, "; a drain of "); is != (tc.want != "") || !strings.Contains(ready, strings.TrimPrefix(tc.want, "A")) {
				t.Errorf("Ready says %q, want %q in it", ready, tc.want)
			}
			if more := announce(t.Context(), after, after); len(more) > 0 {
				t.Errorf("once more: %v", more)
			}
		})
	}
}

// TestWhatAMoveWaitsFor: a member that is to be added is added once all others serve, and the condition says so.
func TestWhatAMoveWaitsFor(t *testing.T) {
	w := healthy(anEtcd(), 1, 2, 3).cordons(2).silences(3)
	got := w.numbered(meta.FindStatusCondition(w.observed(t).Status.Conditions, v1beta2.ConditionScaling).Message)
	if want := "A member is to be added in place of member #2: its node node-2 is cordoned, once all members serve"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// numbered is a text with the numbers of members for their names.
func (w *world) numbered(text string) string {
	for n := range int64(6) {
		text = strings.ReplaceAll(text, w.name(n), "#"+string(rune('0'+n)))
	}
	return text
}

// areReady has Kubernetes find that members serve.
func (w *world) areReady(numbers ...int64) *world {
	for _, n := range numbers {
		w.seemsReady(n)
	}
	return w
}

// nodeIsAway has Kubernetes find that the node of a member does not answer.
func (w *world) nodeIsAway(n int64) *world {
	pod := w.seen.Pods[w.name(n)]
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon)}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
	}
	return w
}

// ends has the pod of a member be deleted, which its node does not get to know.
func (w *world) ends(n int64) *world {
	w.seen.Pods[w.name(n)].DeletionTimestamp = &metav1.Time{Time: noon}
	return w
}

// starts has a member's pod be about to start.
func (w *world) starts(n int64) *world {
	w.seen.Answers[w.name(n)] = session.Answer{Err: session.ErrNoAddress}
	return w
}

func unbudgeted(ec *v1beta2.EtcdCluster) {
	ec.Spec.Disruption = &v1beta2.DisruptionPolicy{Enabled: new(false)}
}
