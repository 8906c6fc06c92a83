package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
)

// TestVoters: the pods of voters are marked, and of no others.
func TestVoters(t *testing.T) {
	requireDecisions(t, map[string]decision{
		"one was promoted":                     {world: healthy(anEtcd(), 1, 2, 3).marked(1, 2), want: "patch Pod/voter #3"},
		"one was promoted, and does not know":  {world: healthy(anEtcd(), 1, 2, 3).marked(1, 2).amends(3, func(a *session.Answer) { a.Status.IsLearner = true }), want: ""},
		"one is a learner":                     {world: healthy(anEtcd(), 1, 2, 3).learns(3).marked(1, 2, 3), want: "patch Pod/voter #3", asks: about(members.Promote, 1, 3)},
		"one is being deleted":                 {world: healthy(anEtcd(), 1, 2, 3).marked(1, 2).isEnding(3), want: ""},
		"pods of before there was the mark":    {world: healthy(anEtcd(), 1, 2, 3).marked(), want: "patch Pod/voter #1; patch Pod/voter #2; patch Pod/voter #3"},
		"it has lost its other marks, as well": {world: healthy(anEtcd(), 1, 2, 3).marked(1, 2).stripped(3), want: "patch Pod/marks #3"},
	})
	added := healthy(anEtcd(size(4)), 1, 2, 3).isAdded(4)
	for _, write := range decide(added.ec, added.seen).Writes {
		if is, ok := write.(loop.Create); ok && is.Object.GetLabels()[objects.VoterLabel] != "" {
			t.Errorf("the pod of a learner begins with the mark of a voter")
		}
	}
}

// TestClientServiceLeadsToVoters: it leads to those that are marked, and where there are pods of before there was the mark
// it leads to all until they have it.
func TestClientServiceLeadsToVoters(t *testing.T) {
	before := func(w *world) *world {
		w.seen.Clients.Spec.Selector = objects.Selector(w.ec)
		return w
	}
	since := func(w *world) *world {
		before(w).seen.Clients.Spec.Selector[objects.VoterLabel] = "true"
		return w
	}
	for name, tc := range map[string]struct {
		world *world
		want  bool
	}{
		"there is nothing yet":             {healthy(anEtcd()), true},
		"all are marked":                   {before(healthy(anEtcd(), 1, 2, 3)), true},
		"one is not marked yet":            {before(healthy(anEtcd(), 1, 2, 3).marked(1, 2)), false},
		"one is a learner":                 {before(healthy(anEtcd(), 1, 2, 3).learns(3)), true},
		"one is no member that is known":   {before(healthy(anEtcd(), 1, 2, 3).leaves(4).marked(1, 2, 3)), false},
		"pods of before, to be taken in":   {before(healthy(anEtcd(adopting), 1, 2, 3).finds()), false},
		"it did, and one was promoted":     {since(healthy(anEtcd(), 1, 2, 3).marked(1, 2)), true},
		"it did, and all marks were taken": {since(healthy(anEtcd(), 1, 2, 3).marked()), true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, write := range decide(tc.world.ec, tc.world.seen).Writes {
				if is, ok := write.(loop.Apply); ok && is.Object == tc.world.seen.Clients {
					want := is.Want.(*corev1ac.ServiceApplyConfiguration).Spec.Selector
					if got := want[objects.VoterLabel] == "true"; got != tc.want {
						t.Errorf("it leads to %v", want)
					}
				}
			}
		})
	}
}

// marked has only these be marked as voters.
func (w *world) marked(numbers ...int64) *world {
	for _, pod := range w.seen.Pods {
		delete(pod.Labels, objects.VoterLabel)
	}
	for _, n := range numbers {
		w.seen.Pods[w.name(n)].Labels[objects.VoterLabel] = "true"
	}
	return w
}

func (w *world) isEnding(n int64) *world {
	w.seen.Pods[w.name(n)].DeletionTimestamp = &metav1.Time{Time: noon}
	return w
}

func (w *world) stripped(n int64) *world {
	w.seen.Unmarked = append(w.seen.Unmarked, w.seen.Pods[w.name(n)])
	return w
}
