package memcached

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/memcached/change"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

func withoutBudget(mc *v1alpha1.Memcached) {
	mc.Spec.Disruption = &v1alpha1.DisruptionSpec{Enabled: new(false)}
}

// TestBudget: without disruption.enabled there is none of the operator's, and others stay.
func TestBudget(t *testing.T) {
	owned := func(seen *pool.Observation) {
		seen.Budget().UID = "budget-uid"
		seen.Budget().OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(aPool(), v1alpha1.GroupVersion.WithKind("Memcached"))}
	}
	foreign := func(seen *pool.Observation) { seen.Budget().UID = "budget-uid" }
	ending := func(seen *pool.Observation) {
		owned(seen)
		seen.Budget().DeletionTimestamp = &metav1.Time{Time: noon}
	}
	for name, tc := range map[string]struct {
		mc   *v1alpha1.Memcached
		seen pool.Observation
		want string
	}{
		"nothing is said of it": {aPool(), somethingSeen(), "apply"},
		"it is enabled":         {aPool(func(mc *v1alpha1.Memcached) { mc.Spec.Disruption = &v1alpha1.DisruptionSpec{Enabled: new(true)} }), somethingSeen(owned), "apply"},
		"it is not enabled":     {aPool(withoutBudget), somethingSeen(owned), "delete"},
		"it is about to go":     {aPool(withoutBudget), somethingSeen(ending), ""},
		"it is gone":            {aPool(withoutBudget), somethingSeen(), ""},
		"it is somebody else's": {aPool(withoutBudget), somethingSeen(foreign), ""},
	} {
		next, err := decide(tc.mc, tc.seen)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, w := range next.Writes {
			if verb, kind, _ := strings.Cut(loop.Name(w), " "); kind == objects.BudgetKind {
				got = verb
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestGuard: while a server is restarted, and only then, no other one may be
// evicted.
func TestGuard(t *testing.T) {
	old, now, named := aPool(warm, version("1.6.18"), size(2)), aPool(warm, size(2)), aPool(warm, size(2), announced(v1alpha1.Warm, "cache-1"))
	unguarded := aPool(warm, size(2), announced(v1alpha1.Warm, "cache-1"), withoutBudget)
	budget := func(evictable int32, observed int64, evicted ...string) seenOption {
		return func(seen *pool.Observation) {
			b := seen.Budget()
			b.Generation, b.Status.ObservedGeneration = 2, observed
			b.Spec.MaxUnavailable = new(intstr.FromInt32(evictable))
			b.Status.DisruptedPods = map[string]metav1.Time{}
			for _, name := range evicted {
				b.Status.DisruptedPods[name] = metav1.Time{Time: noon}
			}
		}
	}
	restarted := func(at time.Time) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			restarting(pod)
			pod.Annotations[objects.ChangedAnnotation] = at.Format(time.RFC3339)
		}
	}
	bigger := aPool(stable, size(1), memory("128Mi"), announced(v1alpha1.Untouched, "cache-0"))
	both := []seenOption{aServer(old, 0), aServer(old, 1), aPull(now, pulled(""))}
	for name, tc := range map[string]struct {
		mc     *v1alpha1.Memcached
		seen   []seenOption
		want   int // how many may be evicted
		change bool
		waits  string
		// overdue is true if the restart takes longer than it may
		overdue bool
	}{
		"nothing to do":                {mc: now, seen: []seenOption{aServer(now, 0), aServer(now, 1)}, want: 1},
		"the image is pulled":          {mc: now, seen: both[:2], want: 1, waits: "image memcached:1.6.38 is being pulled on node n"},
		"one is named":                 {mc: now, seen: append(both, budget(1, 2)), want: 0},
		"anybody may be evicted":       {mc: named, seen: append(both, budget(1, 2)), want: 0, waits: "PodDisruptionBudget cache is to keep the other servers from being evicted"},
		"its controller is late":       {mc: named, seen: append(both, budget(0, 1)), want: 0, waits: "PodDisruptionBudget cache is to keep the other servers from being evicted"},
		"one is being evicted":         {mc: named, seen: append(both, budget(0, 2, "cache-0")), want: 0, waits: "server cache-0 is being evicted"},
		"one that is gone was evicted": {mc: named, seen: append(both, budget(0, 2, "cache-7")), want: 0, change: true},
		"nobody may be evicted":        {mc: named, seen: append(both, budget(0, 2)), want: 0, change: true},
		"without a budget":             {mc: unguarded, seen: append(both, budget(1, 1)), want: noBudget, change: true},
		"it is restarting":             {mc: named, seen: []seenOption{aServer(old, 0), aServer(now, 1, restarted(noon)), aPull(now, pulled(""))}, want: 0, waits: "server cache-1 is restarting"},
		"it hangs":                     {mc: named, seen: []seenOption{aServer(old, 0), aServer(now, 1, restarted(noon.Add(-time.Hour))), aPull(now, pulled(""))}, want: 1, overdue: true, waits: "server cache-1 was to restart at 11:00:00, and has not stopped: it hangs, or memcached in its image ignores SIGUSR1. kubectl delete pod cache-1 starts it anew, with an empty cache"},
		"it waits for room to grow":    {mc: bigger, seen: []seenOption{aServer(aPool(stable, size(1)), 0)}, want: 1},
	} {
		next, err := decide(tc.mc, somethingSeen(append([]seenOption{aStatefulSet(tc.mc)}, tc.seen...)...))
		if err != nil {
			t.Fatal(err)
		}
		evictable, isChanged := evictableOf(t, next), patchOf(next, "change") != nil
		if evictable != tc.want || isChanged != tc.change || next.Waits != tc.waits || next.Overdue != tc.overdue {
			t.Errorf("%s: %d may be evicted, change %v, waits for %q, overdue %v",
				name, evictable, isChanged, next.Waits, next.Overdue)
		}
	}
}

// noBudget is how many may be evicted where the operator has nothing to say about that.
const noBudget = -1

// evictableOf is how many servers may be evicted, by the budget that is wanted.
func evictableOf(t *testing.T, next *change.Plan) int {
	t.Helper()
	for _, w := range next.Writes {
		if write, is := w.(loop.Apply); is && loop.KindOf(write.Object) == objects.BudgetKind {
			var budget policyv1.PodDisruptionBudget
			decodeInto(t, write.Want, &budget)
			return budget.Spec.MaxUnavailable.IntValue()
		}
	}
	return noBudget
}
