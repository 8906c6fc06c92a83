package at

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit/sim"
)

// TestSimulation plays the stories on a simulated cluster, with whatever can go wrong.
func TestSimulation(t *testing.T) {
	simulation().Run(t, stories()...)
}

func simulation() *sim.Simulation {
	return &sim.Simulation{
		Operator:  Operator,
		CRDs:      []string{"config/crd"},
		Kinds:     []client.Object{&atv1alpha1.At{}},
		Each:      neverBack,
		Resources: map[string][]string{},
	}
}
