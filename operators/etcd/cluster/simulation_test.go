package cluster

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/etcd/objects"
	kindrestore "example.com/fairlead/operators/etcd/restore"
)

// TestSimulation plays the stories on a simulated cluster, with whatever can go wrong.
func TestSimulation(t *testing.T) { simulation().Run(t, stories()...) }

// TestSimulationUnderPolicies plays the stories where admission changes or refuses what is written.
func TestSimulationUnderPolicies(t *testing.T) { simulation().Under(t, stories()...) }

// TestSimulationIsDeterministic: what a seed finds can be told, and mended. Certificates are of true
// randomness, which is no part of it.
func TestSimulationIsDeterministic(t *testing.T) {
	withoutTLS := slices.DeleteFunc(stories(), func(sc testkit.Scenario) bool {
		return slices.Contains([]string{"tls", "ca-replaced", "restored-with-tls", "authentication-with-tls"}, sc.Name)
	})
	simulation().RequireSame(t, 48, withoutTLS...)
}

func simulation() *sim.Simulation {
	return &sim.Simulation{
		Operator:  run.Operator{Name: objects.Operator, AddToScheme: v1beta2.AddToScheme, Kinds: []run.Kind{Declare(route), kindrestore.Kind}},
		Histories: 1000,
		CRDs:      []string{"../config/crd"},
		Kinds:     []client.Object{&v1beta2.EtcdCluster{}, &v1beta2.EtcdRestore{}},
		Resources: map[string][]string{"v1": {"pods Pod"}},
		Controllers: func(w *sim.World, r *testkit.Run) []sim.Controller {
			return []sim.Controller{newModelNodes(w, r), sim.NewEndpoints(w)}
		},
		Service: func(obj client.Object) string {
			if er, is := obj.(*v1beta2.EtcdRestore); is {
				return er.Spec.EtcdCluster.Name + "-client"
			}
			return objects.ClientServiceName(obj.(*v1beta2.EtcdCluster))
		},
		Always:   never,
		Meddling: meddling(),
	}
}

// TestSimulationFindsPlanted: with a flaw in a copy of the operator the simulation has to fail.
func TestSimulationFindsPlanted(t *testing.T) {
	for patch, tc := range map[string]struct{ story, finds string }{
		"lost-founder":    {"lost-at-once", "writes that were acknowledged are lost"},
		"two-at-once":     {"upgrades", "voters are left"},
		"ready-unserved":  {"one-member", "Service example-client leads nowhere"},
		"volume-with-pod": {"pod-deleted-with-volumes", "which is a member"},
		// Of clients while members are added:
		"clients-of-learners": {"scales", "which is a learner"},
		// Of a node that is lost:
		"evicted-is-lost": {"node-silent", "which is only not reached"},
		// Of a drain while another member does not serve, and Kubernetes has not noticed that:
		"unnoticed-evicts": {"drained-node-off", "is evicted, without which 1 of 3 voters serve"},
		// Of data that is not trusted:
		"alarm-believed":   {"corrupt-leader", "has the last copy of a write"},
		"suspects-at-once": {"damaged", "only suspected to be wrong"},
		// Of a full database, if the operator dies meanwhile:
		"others-not-awaited": {"database-full", "is being defragmented"},
		// Of a downgrade:
		"downgrade-not-canceled": {"volume-deleted-in-downgrade", "incompatible with current running cluster"},
		// Of a restore:
		"switch-unstopped":    {"restored", "is replaced, and"},
		"old-volumes-at-once": {"restored-with-volumes", "the restored cluster is not complete"},
		"seed-not-asked":      {"restored", "does not serve"},
	} {
		t.Run(patch, func(t *testing.T) {
			sim.FindsPlanted(t, "testdata/"+patch+".patch", "TestSimulation/"+tc.story, tc.finds)
		})
	}
}
