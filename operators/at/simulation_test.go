package at

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
)

// simulated is At on a simulated cluster, where others meddle with it.
var simulated = sim.Simulation{
	Operator: Operator,
	CRDs:     []string{"config/crd"},
	Kinds:    []client.Object{&atv1alpha1.At{}},
	Each:     neverBack,
	Always:   neverTwiceNorEarly,

	Histories: 15_000,
	Meddling: []testkit.Step{
		{Name: "touches the At", Do: touched(func(r *testkit.Run) client.Object { return story(r) })},
		{Name: "touches the pod", Do: touched(func(r *testkit.Run) client.Object { return podOfStory(r) })},
		{Name: removesLabel, When: isClaimedNow, Do: stripped(noLabel)},
		{Name: removesOwner, When: isClaimedNow, Do: stripped(noOwner)},
	},
}

// isClaimedNow holds during an attempt. A pod that loses its marks at another time is not
// the operator's any more.
func isClaimedNow(ctx context.Context, r *testkit.Run) error {
	return settledAs(atv1alpha1.Running, "")(ctx, r)
}

// touched changes an annotation.
func touched(of func(*testkit.Run) client.Object) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, r.Now().String())
		return r.Client.Patch(ctx, of(r), client.RawPatch(types.MergePatchType, patch))
	}
}

// neverTwiceNorEarly holds after every change: no attempt's command was started twice,
// and none before its time.
func neverTwiceNorEarly(c sim.Change, r *testkit.Run) error {
	if pod, ok := c.New.(*corev1.Pod); !ok || !started(pod) {
		return nil
	}
	attempts := map[string]bool{}
	for _, start := range r.Kubelet.Starts() {
		mark := start.Pod.Annotations[ownerAnnotation]
		if mark == "" {
			continue // not the operator's
		}
		attempt := mark + " " + start.Pod.Name
		if attempts[attempt] {
			return fmt.Errorf("pod %s was started twice for %s", start.Pod.Name, mark)
		}
		attempts[attempt] = true
		at, err := current(context.Background(), r)
		if err != nil || ownerMark(at, atExample.gvk) != mark {
			continue // it is gone
		}
		if due, err := scheduledTime(at); err == nil && start.Time.Before(due) {
			return fmt.Errorf("pod %s was started at %s, and is due at %s", start.Pod.Name, start.Time, due)
		}
	}
	return nil
}

// TestSimulation plays the stories with whatever can go wrong.
func TestSimulation(t *testing.T) { simulated.Run(t, stories()...) }

// TestOnceFailed plays again what the simulation found, and what was mended since.
func TestOnceFailed(t *testing.T) {
	for name, tc := range map[string]struct {
		scenario   testkit.Scenario
		deviations string
	}{
		"a pod that was made and deleted while the watch was cut has no events": {editedAfterItsPod(), "news3=4"},
		"a late operator makes the pod of an At that is over":                   {neverStarts(), "operators1=1,news2=3"},
		"the garbage collector takes what is made for an At that is gone":       {outlived(), "operators1=2,news8=3"},
		"two operators take turns at the status": {
			retries(), "operators1=2,turn13=3,news9=2,turn18=2,meddling23=2,turn27=1,news15=4,meddling36=3"},
		"an operator that starts late does without the output because of one refusal": {succeeds(), "fate5=1,restart1=2,fate6=2"},
		"an operator claims a pod that another has discarded":                         {succeeds(), "operators1=1,news3=4,delay3=3,meddling18=3"},
		"an operator that is late deletes the pod that has done it":                   {losesItsMarks(), "operators1=2,news5=3"},
	} {
		t.Run(name, func(t *testing.T) { simulated.Again(t, tc.scenario, tc.deviations) })
	}
}

// TestSimulationUnderPolicies plays the stories where admission changes or refuses what is written.
func TestSimulationUnderPolicies(t *testing.T) { simulated.Under(t, stories()...) }

// TestSimulationIsDeterministic: what a seed finds can be told, and mended.
func TestSimulationIsDeterministic(t *testing.T) {
	simulated.RequireSame(t, 160, stories()...)
}

// TestSimulationFindsPlanted: with a flaw in a copy of the operator the simulation has to
// fail. The flaw: a pod that is not to be claimed is deleted without a word in status, by
// which another operator would have known that it must not claim it.
func TestSimulationFindsPlanted(t *testing.T) {
	sim.FindsPlanted(t, "testdata/planted.patch", "TestSimulation", "the At is FAILED ResultUnknown, want DONE Completed")
}
