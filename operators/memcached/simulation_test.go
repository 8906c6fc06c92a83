package memcached

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/memcached/objects"
)

// TestSimulation plays the stories on a simulated cluster, with whatever can go wrong.
func TestSimulation(t *testing.T) {
	simulation(t).Run(t, append(stories(simulatedRestarts{}), goesBackWarm())...)
}

// TestOnceFailed plays what has failed once. What was wrong is in the names.
func TestOnceFailed(t *testing.T) {
	for name, tc := range map[string]struct{ story, deviations string }{
		"an operator that did not see the StatefulSet deleted the pull that another had made": {
			"upgrades-warm", "operators1=2,delay4=2,pause1=4,news11=1,news13=3,turn38=6,meddling44=1",
		},
		"what was planned without a StatefulSet was done although there is one, and opened the budget again and again": {
			"gets-memory", "operators1=1,meddling7=2,meddling8=5,news4=3,news25=3,turn54=4",
		},
		"a StatefulSet that lost its label while its servers were being replaced by others was never deleted": {
			"loses-labels-and-room", "meddling242=8",
		},
		"a Deployment that lost its label while it was being replaced was never deleted": {
			"takes-over", "meddling105=10",
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := stories(simulatedRestarts{})
			i := slices.IndexFunc(all, func(sc testkit.Scenario) bool { return sc.Name == tc.story })
			simulation(t).Again(t, all[i], tc.deviations)
		})
	}
}

// TestSimulationUnderPolicies plays the stories where admission changes or refuses what is written.
func TestSimulationUnderPolicies(t *testing.T) {
	simulation(t).Under(t, stories(simulatedRestarts{})...)
}

// TestSimulationIsDeterministic: what a seed finds can be told, and mended.
func TestSimulationIsDeterministic(t *testing.T) {
	simulation(t).RequireSame(t, 48, stories(simulatedRestarts{})...)
}

// TestSimulationFindsPlanted: with a flaw in a copy of the operator the simulation has to fail.
func TestSimulationFindsPlanted(t *testing.T) {
	for patch, tc := range map[string]struct{ story, finds string }{
		// The status of a pod that was just changed in place, which is the one from before, is taken for that of the
		// restarted server, so that the next one is restarted too.
		"two-away": {"upgrades-warm", "[cache-0 cache-1] are away at the same time"},
		// A change is announced by what the last server has.
		"emptied": {"goes-back-warm", "which empties it, and that was not announced"},
	} {
		t.Run(patch, func(t *testing.T) {
			sim.FindsPlanted(t, "testdata/"+patch+".patch", "TestSimulation/"+tc.story, tc.finds)
		})
	}
}

func simulation(t *testing.T) *sim.Simulation {
	t.Helper()
	// The servers' answers can be late, or none, like those of the API server.
	was := readLimit
	t.Cleanup(func() { readLimit = was })
	readLimit = func(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, pod *corev1.Pod) (has int64, err error) {
		err = outside.Do(ctx, outside.Call{Verb: "get", What: "stats", Name: pod.Name}, func() error {
			has, err = annotatedLimit(ctx, live, mc, pod)
			return err
		})
		return has, err
	}
	return &sim.Simulation{
		Operator:  Operator,
		Histories: 800,
		CRDs:      []string{"config/crd"},
		Kinds:     []client.Object{&v1alpha1.Memcached{}},
		Resources: map[string][]string{"v1": {"pods Pod", "pods/resize Pod"}},
		Controllers: func(w *sim.World, r *testkit.Run) []sim.Controller {
			return []sim.Controller{sim.NewDeployments(w), sim.NewReplicaSets(w), sim.NewStatefulSets(w), sim.NewBudgets(w), sim.NewEndpoints(w), newRestarting(w, r)}
		},
		Service: func(obj client.Object) string {
			if mc := obj.(*v1alpha1.Memcached); *mc.Spec.Size > 0 {
				return objects.PoolName(mc)
			}
			return ""
		},
		Always: func(c sim.Change, r *testkit.Run) error {
			return errors.Join(oneAway(c, r), emptiedAsAnnounced(c, r))
		},
		Meddling: meddling(),
		Reports:  "status Memcached",
	}
}

// meddling is what others do to the objects of a pool at any time.
func meddling() []testkit.Step {
	patch := func(who string, obj client.Object, name, patch string) testkit.Step {
		return testkit.Step{Name: who, Do: func(ctx context.Context, r *testkit.Run) error {
			its := obj.DeepCopyObject().(client.Object)
			its.SetNamespace(r.Namespace)
			its.SetName(name)
			return r.Client.Patch(ctx, its, client.RawPatch(types.MergePatchType, []byte(patch)))
		}}
	}
	const noLabel = `{"metadata":{"labels":{"` + run.ManagedByLabel + `":null}}}`
	touch := func(obj client.Object, name string) testkit.Step {
		return testkit.Step{Name: "touches " + name, Do: func(ctx context.Context, r *testkit.Run) error {
			its := obj.DeepCopyObject().(client.Object)
			its.SetNamespace(r.Namespace)
			its.SetName(name)
			touched := `{"metadata":{"annotations":{"touched":"` + r.Now().Format(time.RFC3339Nano) + `"}}}`
			return r.Client.Patch(ctx, its, client.RawPatch(types.MergePatchType, []byte(touched)))
		}}
	}
	return []testkit.Step{
		touch(&v1alpha1.Memcached{}, "cache"),
		touch(&corev1.Pod{}, "cache-0"),
		patch("takes the label of server cache-0", &corev1.Pod{}, "cache-0", noLabel),
		patch("takes the label of the Service", &corev1.Service{}, "cache", noLabel),
		patch("takes the label of the StatefulSet", &appsv1.StatefulSet{}, "cache", noLabel),
		patch("takes the label of the budget", &policyv1.PodDisruptionBudget{}, "cache", noLabel),
		patch("takes the label of the Deployment", &appsv1.Deployment{}, "cache", noLabel),
	}
}
