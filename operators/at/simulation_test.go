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

// TestSimulationIsDeterministic: what a seed finds can be told, and mended.
func TestSimulationIsDeterministic(t *testing.T) {
	simulation().RequireSame(t, 160, stories()...)
}

// TestSimulationFindsPlanted: with a flaw in a copy of the operator the simulation has to
// fail. The flaw: a pod that is not to be claimed is deleted without a word in status, by
// which another operator would have known that it must not claim it.
func TestSimulationFindsPlanted(t *testing.T) {
	sim.FindsPlanted(t, "testdata/planted.patch", "TestSimulation", "the At is FAILED ResultUnknown, want DONE Completed")
}
