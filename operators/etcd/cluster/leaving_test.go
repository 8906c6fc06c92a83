package cluster

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/view"
)

// cordons has nodes be seen, each of which has one member, whose data cannot leave it, and those of these members cordoned.
func (w *world) cordons(numbers ...int64) *world {
	w.seen.IsFixed, w.seen.Nodes = true, map[string]view.Node{}
	for n := range int64(9) {
		if pod := w.seen.Pods[w.name(n)]; pod != nil {
			pod.Spec.NodeName = fmt.Sprintf("node-%d", n)
		}
	}
	for _, n := range numbers {
		w.seen.Nodes[fmt.Sprintf("node-%d", n)] = view.Node{IsCordoned: true}
	}
	return w
}

// zones has nodes be seen, each of which has one member, in these zones.
func (w *world) zones(names ...string) *world {
	w.cordons().movable()
	for i, zone := range names {
		w.seen.Nodes[fmt.Sprintf("node-%d", i+1)] = view.Node{Zone: zone}
	}
	return w
}

// movable has members take their data along: to see nodes says nothing of them.
func (w *world) movable() *world {
	w.seen.IsFixed = false
	return w
}

// seemsReady has Kubernetes not have noticed that a member does not serve.
func (w *world) seemsReady(n int64) *world {
	w.seen.Pods[w.name(n)].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return w
}

// annotates has a user want a member replaced.
func (w *world) annotates(n int64) *world {
	metav1.SetMetaDataAnnotation(&w.seen.Pods[w.name(n)].ObjectMeta, annotation.Replace, "true")
	return w
}

func completing(ec *v1beta2.EtcdCluster) {
	ec.Status.Restoring = &v1beta2.Restoring{Phase: v1beta2.RestoreCompleting, ID: "another"}
}

// alone is a cluster of one.
func alone(ec *v1beta2.EtcdCluster) {
	ec.Spec.Size, ec.Status.Founders, ec.Status.MemberList = 1, ec.Status.Founders[:1], ec.Status.MemberList[:1]
}

// TestLeaving: who cannot take its data to another node is replaced before it leaves.
func TestLeaving(t *testing.T) {
	isPaused := func(ec *v1beta2.EtcdCluster) { ec.Spec.Paused = true }
	requireDecisions(t, map[string]decision{
		"a node is cordoned: name another member": {
			world: healthy(anEtcd(), 1, 2, 3).cordons(2), want: "status/member",
		},
		"named: add it":                            {world: healthy(anEtcd(adding), 1, 2, 3).cordons(2), asks: adds(false)},
		"named, and uncordoned: not any more":      {world: healthy(anEtcd(adding), 1, 2, 3).cordons()},
		"added: it gets its pod":                   {world: healthy(anEtcd(), 1, 2, 3).cordons(2).isAdded(4), want: "create Pod #4"},
		"added, and uncordoned: not any more":      {world: healthy(anEtcd(), 1, 2, 3).cordons().isAdded(4), want: "create Pod #4", asks: removes(1, 4, 1, 2, 3, 4)},
		"added just now, and uncordoned: its name": {world: healthy(anEtcd(adding), 1, 2, 3).cordons().isAdded(4), want: "create Pod #4; status/member"},
		"it has caught up: promote":                {world: healthy(anEtcd(), 1, 2, 3, 4).cordons(2).learns(4), asks: about(members.Promote, 1, 4)},
		"it votes: remove the one that leaves":     {world: healthy(anEtcd(), 1, 2, 3, 4).cordons(2), asks: removes(1, 2, 1, 2, 3, 4)},
		"it votes, and is down: wait":              {world: healthy(anEtcd(), 1, 2, 3, 4).cordons(2).silences(4)},
		"it votes, another is down: wait":          {world: healthy(anEtcd(), 1, 2, 3, 4).cordons(2).silences(3)},
		"it votes, the one that leaves is down":    {world: healthy(anEtcd(), 1, 2, 3, 4).cordons(2).silences(2), asks: removes(1, 2, 1, 2, 3, 4)},
		"it votes, uncordoned: remove the last":    {world: healthy(anEtcd(), 1, 2, 3, 4).cordons(), asks: removes(1, 4, 1, 2, 3, 4)},
		"it votes, the leader leaves: hand over":   {world: healthy(anEtcd(), 1, 2, 3, 4).cordons(1), asks: about(members.MoveLeader, 1, 2)},
		"two leave: the one that does not lead":    {world: healthy(anEtcd(), 1, 2, 3, 4).cordons(1, 3), asks: removes(1, 3, 1, 2, 3, 4)},
		"two leave: the one that is not ready":     {world: healthy(anEtcd(), 1, 2, 3, 4).cordons(2, 3).seemsReady(2), asks: removes(1, 3, 1, 2, 3, 4)},
		"all leave: one more member at a time":     {world: healthy(anEtcd(), 1, 2, 3).cordons(1, 2, 3), want: "status/member"},
		"one of one leaves: name another":          {world: healthy(anEtcd(alone), 1).cordons(1), want: "status/member"},
		"it is down: nobody can join":              {world: healthy(anEtcd(), 1, 2, 3).cordons(2).silences(2)},
		"another is down: nobody can join":         {world: healthy(anEtcd(), 1, 2, 3).cordons(2).silences(3)},
		"another is lost: first that":              {world: healthy(anEtcd(), 1, 2, 3).cordons(2).loses(3), asks: removes(1, 3, 1, 2, 3)},
		"no quorum: nothing":                       {world: healthy(anEtcd(), 1, 2, 3).cordons(2).silences(2, 3).leaderless()},
		"a downgrade is enabled: that first":       {world: healthy(anEtcd(version("3.5.35")), 1, 2, 3).cordons(2).downgrades("3.5")},
		"paused: nothing":                          {world: healthy(anEtcd(isPaused), 1, 2, 3).cordons(2)},
		"a restore is under way: that first":       {world: healthy(anEtcd(completing), 1, 2, 3).cordons(2).silences(3)},
		"its volume can follow: nothing":           {world: healthy(anEtcd(onVolumes), 1, 2, 3).cordons(2).movable()},
		"to be fewer: the one that leaves first":   {world: healthy(anEtcd(size(2)), 1, 2, 3).cordons(2), asks: removes(1, 2, 1, 2, 3)},
	})
}

// TestPlaceOfTheNew: a new member is kept off the zones of others, but not off that of the one whose place it takes.
func TestPlaceOfTheNew(t *testing.T) {
	for name, tc := range map[string]struct {
		world *world
		want  string
	}{
		"a node is cordoned": {healthy(anEtcd(), 1, 2, 3).cordons(2).isAdded(4), "NotIn " + objects.MemberName(anEtcd(), 2)},
		"one more":           {healthy(anEtcd(size(4)), 1, 2, 3).isAdded(4), ""},
	} {
		var got []string
		for _, write := range decide(tc.world.ec, tc.world.seen).Writes {
			create, is := write.(loop.Create)
			if !is {
				continue
			}
			for _, term := range create.Object.(*corev1.Pod).Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				for _, except := range term.PodAffinityTerm.LabelSelector.MatchExpressions {
					got = append(got, string(except.Operator)+" "+strings.Join(except.Values, " "))
				}
			}
		}
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: the zones of its pod are those of members %q, want %q", name, got, tc.want)
		}
	}
}

// TestReplacedByHand: a user has a member replaced, also one whose volume could follow it, and of which no node is seen.
func TestReplacedByHand(t *testing.T) {
	w := healthy(anEtcd(onVolumes), 1, 2, 3)
	if next := decide(w.ec, w.annotates(2).seen); w.doing(next) != "patch PersistentVolumeClaim/suspect #2; status/member" {
		t.Errorf("it does %q, want another member", w.doing(next))
	} else if want := "a member is to be added in place of member " + w.name(2) + ": its pod has the annotation " + annotation.Replace; next.Doing != want {
		t.Errorf("it says %q, want %q", next.Doing, want)
	}
	w = healthy(anEtcd(onVolumes), 1, 2, 3, 4).annotates(2)
	if diff := w.asked(decide(w.ec, w.seen), removes(1, 2, 1, 2, 3, 4)); diff != "" {
		t.Errorf("what it asks for when another votes (-want +got):\n%s", diff)
	}
	always := anEtcd(func(ec *v1beta2.EtcdCluster) {
		ec.Spec.Pod = &v1beta2.PodPolicy{Annotations: map[string]string{annotation.Replace: "true"}}
	})
	if w = healthy(always, 1, 2, 3); w.doing(decide(always, w.seen)) != "" {
		t.Error("what spec.pod says has all members replaced for ever")
	}
}

// TestEvictionsOfFixed: a drain takes no member whose data cannot leave the node, unless it is down and cannot be replaced
// before.
func TestEvictionsOfFixed(t *testing.T) {
	for name, tc := range map[string]struct {
		world *world
		want  int // of pods that evictions have to leave
	}{
		"all serve":                          {healthy(anEtcd(), 1, 2, 3).cordons(), 3},
		"one is leaving":                     {healthy(anEtcd(), 1, 2, 3).cordons(2), 3},
		"a learner takes its place":          {healthy(anEtcd(), 1, 2, 3, 4).cordons(2).learns(4), 4},
		"another has taken its place":        {healthy(anEtcd(), 1, 2, 3, 4).cordons(2), 4},
		"its pod is left":                    {healthy(anEtcd(), 1, 2, 3).leaves(4).cordons(4), 4},
		"one is down":                        {healthy(anEtcd(), 1, 2, 3).cordons().silences(3), 3},
		"one is down, another is leaving":    {healthy(anEtcd(), 1, 2, 3).cordons(2).silences(3), 3},
		"the one that is leaving is down":    {healthy(anEtcd(), 1, 2, 3).cordons(2).silences(2), 2},
		"the same, unnoticed":                {healthy(anEtcd(), 1, 2, 3).cordons(2).silences(2).seemsReady(2), 3},
		"one is down, unnoticed":             {healthy(anEtcd(onVolumes), 1, 2, 3).movable().silences(3).seemsReady(3), 3},
		"one of five is down, unnoticed":     {healthy(anEtcd(onVolumes, size(5)), 1, 2, 3, 4, 5).movable().silences(3).seemsReady(3), 4},
		"one is down, noticed":               {healthy(anEtcd(onVolumes), 1, 2, 3).movable().silences(3), 2},
		"one of two is down, unnoticed":      {healthy(anEtcd(onVolumes, size(2)), 1, 2).movable().silences(2).seemsReady(2), 2},
		"the only one is down, unnoticed":    {healthy(anEtcd(alone, onVolumes), 1).movable().silences(1).seemsReady(1), 1},
		"of one without a volume":            {healthy(anEtcd(alone), 1).cordons(1), 1},
		"that one is down":                   {healthy(anEtcd(alone), 1).cordons(1).silences(1), 1},
		"of one with a volume, that is down": {healthy(anEtcd(alone, onVolumes), 1).cordons(1).silences(1), 0},
		"none has formed a cluster":          {healthy(anEtcd(notFormed, onVolumes), 1, 2, 3).founding().cordons(1), 0},
		"volumes can follow":                 {healthy(anEtcd(onVolumes), 1, 2, 3).cordons(2).movable(), 2},
		"a learner, volumes can follow":      {healthy(anEtcd(onVolumes), 1, 2, 3, 4).cordons().movable().learns(4), 4},
		"a learner, nodes are not seen":      {healthy(anEtcd(), 1, 2, 3, 4).movable().learns(4), 6},
		"nodes are not seen":                 {healthy(anEtcd(), 1, 2, 3).movable(), 2},
	} {
		next := decide(tc.world.ec, tc.world.seen)
		if got := next.view.LeastAvailable(tc.world.ec); got != tc.want {
			t.Errorf("%s: %d are to stay, want %d", name, got, tc.want)
		}
	}
}

// TestVolumesOfOneNode: which volumes cannot go to another node.
func TestVolumesOfOneNode(t *testing.T) {
	in := func(label string, values ...string) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: label, Operator: corev1.NodeSelectorOpIn, Values: values},
		}}}}
	}
	for name, tc := range map[string]struct {
		affinity *corev1.NodeSelector
		want     bool
	}{
		"any node":       {nil, false},
		"a host name":    {in(corev1.LabelHostname, "worker-1"), true},
		"a local driver": {in("topology.topolvm.io/node", "worker-1"), true},
		"two nodes":      {in(corev1.LabelHostname, "worker-1", "worker-2"), false},
		"a zone":         {in(corev1.LabelTopologyZone, "a"), false},
		"one or another": {&corev1.NodeSelector{NodeSelectorTerms: append(in(corev1.LabelHostname, "worker-1").NodeSelectorTerms, in(corev1.LabelHostname, "worker-2").NodeSelectorTerms...)}, false},
	} {
		volume := &corev1.PersistentVolume{}
		if tc.affinity != nil {
			volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: tc.affinity}
		}
		if got := isOfOneNode(volume); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
