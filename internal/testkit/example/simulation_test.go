package example

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/sim"
)

// TestSimulation plays the story on a simulated cluster: with everything in it that can go
// wrong, once each, and then with many things at once, at random.
func TestSimulation(t *testing.T) {
	simulation := &sim.Simulation{
		Operator: Operator,
		CRDs:     []string{"."},
		Kinds:    []client.Object{&Order{}}, // their status is watched for lies
	}
	simulation.Run(t, stories()...)
}
