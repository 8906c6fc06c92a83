package backup

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
)

// TestSimulation plays the stories on a simulated cluster, with whatever can go wrong.
func TestSimulation(t *testing.T) { simulation().Run(t, stories()...) }

// TestOnceFailed plays what has failed once. What was wrong is in the names.
func TestOnceFailed(t *testing.T) {
	all := stories()
	for name, tc := range map[string]struct{ story, deviations string }{
		"a pod that had lost its label and its owner was in the way for ever": {"proved", "meddling8=6,meddling14=7"},
		"a pod that lost its label was not deleted when it was over":          {"once", "meddling19=6"},
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(all, func(sc testkit.Scenario) bool { return sc.Name == tc.story })
			simulation().Again(t, all[i], tc.deviations)
		})
	}
}

// TestSimulationUnderPolicies plays the stories where admission changes or refuses what is written.
func TestSimulationUnderPolicies(t *testing.T) { simulation().Under(t, stories()...) }

// TestSimulationIsDeterministic: what a seed finds can be told, and mended.
func TestSimulationIsDeterministic(t *testing.T) { simulation().RequireSame(t, 48, stories()...) }

// TestSimulationFindsPlanted: with a flaw in a copy of the operator the simulation has to fail.
func TestSimulationFindsPlanted(t *testing.T) {
	for patch, tc := range map[string]struct{ story, finds string }{
		"deleted-before-its-result":    {"once", "that it has made is not in status"},
		"begins-beside-another":        {"cannot-start", "are at work at the same time"},
		"forgets-what-was-made":        {"fails-now-and-then", "was forgotten"},
		"deletes-what-it-has-not-seen": {"fails-now-and-then", "that it has made is not in status"},
	} {
		t.Run(patch, func(t *testing.T) {
			sim.FindsPlanted(t, "testdata/"+patch+".patch", "TestSimulation/"+tc.story, tc.finds)
		})
	}
}

func simulation() *sim.Simulation {
	return &sim.Simulation{
		Operator:  operator,
		Histories: 1500,
		CRDs:      []string{"../config/crd"},
		Kinds:     []client.Object{&v1beta2.EtcdBackup{}},
		Resources: map[string][]string{"v1": {"pods Pod"}},
		Controllers: func(w *sim.World, r *testkit.Run) []sim.Controller {
			r.Own = simulatedWorld{w}
			return nil
		},
		Each:     neverBack,
		Always:   never,
		Reports:  "status EtcdBackup",
		Meddling: meddling(),
	}
}

// meddling is what others do to the objects of an EtcdBackup at any time.
func meddling() []testkit.Step {
	pod := func(name string, do func(context.Context, *testkit.Run, *corev1.Pod) error) testkit.Step {
		return testkit.Step{Name: name, Do: func(ctx context.Context, r *testkit.Run) error {
			pods, err := podsOf(ctx, r)
			if err != nil || len(pods) == 0 {
				return errors.Join(err, errNoPod)
			}
			return do(ctx, r, &pods[0])
		}}
	}
	patch := func(patch string) func(context.Context, *testkit.Run, *corev1.Pod) error {
		return func(ctx context.Context, r *testkit.Run, pod *corev1.Pod) error {
			return r.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch)))
		}
	}
	return []testkit.Step{
		{Name: "touches the EtcdBackup", Do: func(ctx context.Context, r *testkit.Run) error {
			return patched(`{"metadata":{"annotations":{"touched":"`+r.Now().Format(time.RFC3339Nano)+`"}}}`)(ctx, r)
		}},
		pod("deletes the pod", func(ctx context.Context, r *testkit.Run, pod *corev1.Pod) error { return r.Client.Delete(ctx, pod) }),
		pod("takes the label of the pod", patch(`{"metadata":{"labels":{"`+run.ManagedByLabel+`":null}}}`)),
		pod(takesOwner, patch(`{"metadata":{"ownerReferences":null}}`)),
	}
}

var errNoPod = errors.New("there is no pod")
