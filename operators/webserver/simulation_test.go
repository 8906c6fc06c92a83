package webserver

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
)

// TestSimulation plays the stories on a simulated cluster, with whatever can go wrong.
func TestSimulation(t *testing.T) {
	simulation().Run(t, stories(t)...)
}

func simulation() *sim.Simulation {
	return &sim.Simulation{
		Operator: Operator,
		CRDs:     []string{"config/crd"},
		Kinds:    []client.Object{&webv1.WebServer{}},
		Resources: map[string][]string{
			"gateway.networking.k8s.io/v1": {"httproutes HTTPRoute"},
			"route.openshift.io/v1":        {"routes Route"},
		},
		Controllers: func(w *sim.World, _ *testkit.Run) []sim.Controller {
			return []sim.Controller{sim.NewDeployments(w), sim.NewReplicaSets(w)}
		},
	}
}
