package at

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// kept is what a history keeps.
type kept struct {
	dues map[string]time.Time // of each generation of each At
	// roomFrom is when there is room for pods, in a story where there is none before.
	roomFrom time.Time
	prepare  atv1alpha1.Preparation
}

func keptOf(r *testkit.Run) *kept {
	k, ok := r.Own.(*kept)
	if !ok {
		k = &kept{dues: map[string]time.Time{}}
		r.Own = k
	}
	return k
}

// neverTwiceNorEarly holds after every change: no attempt's command was started twice,
// and none before its time.
func neverTwiceNorEarly(c sim.Change, r *testkit.Run) error {
	dues := keptOf(r).dues
	if at, ok := c.New.(*atv1alpha1.At); ok {
		if due, err := scheduledTime(at); err == nil {
			dues[ownerMark(at, atExample.gvk)+" "+strconv.FormatInt(at.Generation, 10)] = due
		}
		return nil
	}
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
		// The At may have been put off when its pod had begun to run.
		if due := dues[mark+" "+start.Pod.Annotations[generationAnnotation]]; start.Time.Before(due) {
			return fmt.Errorf("pod %s was started at %s, and is due at %s", start.Pod.Name, start.Time, due)
		}
	}
	return nil
}

// TestSimulation plays the stories with whatever can go wrong.
func TestSimulation(t *testing.T) {
	listsAtOnce(t)
	simulated.Run(t, slices.Concat(stories(), processStories(), nodeStories())...)
}

// listsAtOnce has Ats that are due listed, in place of read, however few there are.
func listsAtOnce(t *testing.T) {
	usual := readSingly
	readSingly = 1
	t.Cleanup(func() { readSingly = usual })
}

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

// TestAsUsual plays stories in which nothing goes wrong: what may be too late then is not.
func TestAsUsual(t *testing.T) {
	for name, tc := range map[string]struct {
		scenario testkit.Scenario
		check    func(*atv1alpha1.At) error
	}{
		"a change of a prepared At takes effect": {editedWhenPrepared(), func(at *atv1alpha1.At) error {
			if at.Generation != 2 || saysTooLate(at) {
				return fmt.Errorf("generation %d, %s", at.Generation, readyMessage(&at.Status))
			}
			return nil
		}},
		"the first try after a refusal is when it is due": {hasNoRoomEarly(), func(at *atv1alpha1.At) error {
			if at.Status.Lateness.Duration > time.Second {
				return fmt.Errorf("%s late", at.Status.Lateness.Duration)
			}
			return nil
		}},
		"a process that waits begins at its instant": {asProcess(editedWhenPrepared()), inTime},
		"a change of it takes effect":                {asProcess(editedWhenItBegins()), isDoneFromTheLast},
		"so does one of a process that cannot start": {editedWhenStuck(), isDoneFromTheLast},
		"so does suspending it":                      {asProcess(suspendedWhenPrepared()), isDoneFromTheLast},
		"a process whose pod is deleted":             {losesItsProcess(), inTime},
		"a process that cannot be":                   {lacksTheProgram(), inTime},
		"a process that its node refuses":            {isRefusedEarly(), inTime},
		"a run whose node is found":                  {asNode(editedWhenPrepared()), inTime},
		"a placeholder that is refused":              {lacksRoomForTwo(), inTime},
		"a placeholder that cannot start":            {cannotBePlaced(), inTime},
	} {
		t.Run(name, func(t *testing.T) {
			check := tc.scenario.Check
			tc.scenario.Check = func(ctx context.Context, r *testkit.Run) error {
				at, err := current(ctx, r)
				if err != nil {
					return err
				}
				return errors.Join(check(ctx, r), tc.check(at))
			}
			simulated.Again(t, tc.scenario, "")
		})
	}
}

// TestWritesOfARun: what a run costs, from the creation of its At, and that at the instant one write is left.
func TestWritesOfARun(t *testing.T) {
	plain := succeeds()
	for name, tc := range map[string]struct {
		in      time.Duration
		prepare atv1alpha1.Preparation
		want    []string
	}{
		"that is due": {0, "", []string{"create Pod", "status At/claim", "call Pod/release", "status At"}},
		"that waits":  {time.Minute, "", []string{"status At", "call Pod/early", "status At/prepare", "call Pod/release", "status At/claim", "status At"}},
		"as a process": {lead / 2, atv1alpha1.PrepareProcess,
			[]string{"call Pod/early", "status At/prepare", "call Pod/release", "status At", "status At/claim", "status At"}},
		"with a node": {time.Minute, atv1alpha1.PrepareNode,
			[]string{"call Pod/placeholder", "status At", "status At", "call Pod/early", "status At/prepare", "call Pod/release", "status At/claim", "delete Pod", "status At"}},
		"unprepared": {time.Minute, atv1alpha1.PrepareNone, []string{"status At", "create Pod", "status At/claim", "call Pod/release", "status At"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := plain
			if tc.prepare == atv1alpha1.PrepareProcess {
				sc = asProcess(sc)
			}
			if tc.prepare == atv1alpha1.PrepareNode {
				sc = asNode(sc)
			}
			sc.Arrange, sc.Check = arrangedIn(tc.in, spec(func(s *atv1alpha1.AtSpec) { s.Prepare = tc.prepare })), nil
			var got []string
			for _, w := range simulated.Trace(t, sc) {
				got = append(got, w.Part)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSimulationUnderPolicies plays the stories where admission changes or refuses what is written.
func TestSimulationUnderPolicies(t *testing.T) { simulated.Under(t, stories()...) }

// TestSimulationIsDeterministic: what a seed finds can be told, and mended.
func TestSimulationIsDeterministic(t *testing.T) {
	simulated.RequireSame(t, 160, stories()...)
}

// TestSimulationFindsPlanted: with a flaw in a copy of the operator the simulation has to fail.
func TestSimulationFindsPlanted(t *testing.T) {
	for patch, tc := range map[string]struct{ test, finds string }{
		// A pod that is not to be claimed is deleted without a word in status, by which another operator would have
		// known that it must not claim it.
		"planted": {"TestSimulation", "the At is FAILED ResultUnknown, want DONE Completed"},
		// Of prepared pods. The gate is removed before the time has come:
		"early-gate": {"TestSimulation/edited-when-prepared", "and is due at"},
		// A pod that is gone is taken for one that has not run:
		"double-run": {"TestSimulation/loses-its-pod-when-it-begins", "was started twice"},
		// A change that came too late is not reported:
		"lost-edit": {"TestSimulation/edited-when-it-begins", "nor does status say that the change came too late"},
		// Of processes that wait. Their end is taken for one before the command has begun:
		"begun-twice": {"TestSimulation/succeeds-process", "was started twice"},
	} {
		t.Run(patch, func(t *testing.T) { sim.FindsPlanted(t, "testdata/"+patch+".patch", tc.test, tc.finds) })
	}
}
