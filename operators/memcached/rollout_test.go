package memcached

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/pool"
)

// TestRolloutRestart: what kubectl rollout restart does is reported as the cold change that it
// is, and where it does nothing, that is said.
func TestRolloutRestart(t *testing.T) {
	at := func(ago time.Duration) string { return noon.Add(-ago).Format(time.RFC3339) }
	random := func(ago time.Duration) seenOption {
		return func(seen *pool.Observation) {
			mc := aPool()
			aDeployment(mc, 3)(seen)
			d := seen.Deployment()
			d.Spec.Template = mustTemplate(mc).PodTemplateSpec
			d.Spec.Template.Annotations[pool.RestartedAnnotation] = at(ago)
		}
	}
	fixed := func(ago time.Duration) seenOption {
		return func(seen *pool.Observation) {
			aStatefulSet(aPool(stable))(seen)
			seen.StatefulSet().Spec.Template.Annotations[pool.RestartedAnnotation] = at(ago)
		}
	}
	after := func(ago time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations[pool.RestartedAnnotation] = at(ago) }
	}
	pods := func(mc *v1alpha1.Memcached, options ...func(*corev1.Pod)) []seenOption {
		var all []seenOption
		for i := range 3 {
			one := func(*corev1.Pod) {}
			if i < len(options) {
				one = options[i]
			}
			all = append(all, aServer(mc, i, one))
		}
		return all
	}
	const minute = time.Minute
	for name, tc := range map[string]struct {
		mc      *v1alpha1.Memcached
		seen    []seenOption
		updated int32 // -1 if there is no change
		note    bool
	}{
		"a Deployment, and nothing is replaced": {aPool(), append(pods(aPool()), random(minute)), 0, false},
		"one is":                                {aPool(), append(pods(aPool(), after(minute)), random(minute)), 1, false},
		"all are":                               {aPool(), append(pods(aPool(), after(minute), after(minute), after(minute)), random(minute)), -1, false},
		"all were, a long time ago":             {aPool(), append(pods(aPool(), after(100*time.Hour), after(100*time.Hour), after(100*time.Hour)), random(100*time.Hour)), -1, false},
		"all were, and are again":               {aPool(), append(pods(aPool(), after(100*time.Hour), after(100*time.Hour), after(minute)), random(minute)), 1, false},
		"a StatefulSet":                         {aPool(stable), append(pods(aPool(stable)), fixed(minute)), -1, true},
		"its pods were replaced":                {aPool(stable), append(pods(aPool(stable), after(minute), after(minute), after(minute)), fixed(minute)), -1, false},
		"one is left":                           {aPool(stable), append(pods(aPool(stable), after(minute), after(minute)), fixed(minute)), -1, true},
		"a long time ago":                       {aPool(stable), append(pods(aPool(stable)), fixed(2*time.Hour)), -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := somethingSeen(tc.seen...)
			next, err := decide(tc.mc, seen)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tc.updated < 0 && next.Upgrade != nil:
				t.Errorf("there is a change: %+v", next.Upgrade)
			case tc.updated >= 0 && (next.Upgrade == nil || next.Upgrade.Kind != v1alpha1.Cold || next.Upgrade.Updated != tc.updated || !strings.HasPrefix(next.Upgrade.Message, "kubectl rollout restart of Deployment cache: ")):
				t.Errorf("%+v, want a cold change with %d updated", next.Upgrade, tc.updated)
			}
			if patchOf(next, "change") != nil {
				t.Error("a server is changed in place")
			}
			ready := meta.FindStatusCondition(summarize(tc.mc, seen, next, nil).Conditions, status.Ready)
			if says := strings.Contains(ready.Message, "rollout restart of StatefulSet cache restarts no server"); says != tc.note {
				t.Errorf("Ready says %q", ready.Message)
			}
			if tc.note && next.WakeAfter != pool.RestartNoted-minute {
				t.Errorf("woken after %s, to take that back", next.WakeAfter)
			}
			tc.mc.Status.Upgrade = next.Upgrade
			again, err := decide(tc.mc, seen)
			if err != nil || (again.Upgrade == nil) != (next.Upgrade == nil) || again.Upgrade != nil && *again.Upgrade != *next.Upgrade {
				t.Errorf("once announced, it is %+v (%v)", again.Upgrade, err)
			}
		})
	}
}
