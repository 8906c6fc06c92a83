//go:build apiserver

package at

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.Options{CRDs: []string{"config/crd"}})
}

// newSweep plays the stories on the real API server, where attempts follow each other
// fast, and processes wait for a shorter time.
func newSweep(t *testing.T) *testkit.Sweep {
	listsAtOnce(t)
	usualBackoff, usualCall := firstBackoff, lastCall
	firstBackoff, lastCall = 100*time.Millisecond, 500*time.Millisecond
	t.Cleanup(func() { firstBackoff, lastCall = usualBackoff, usualCall })
	return &testkit.Sweep{
		Start:  standalone.Start(Operator),
		Writes: atExample.kind().Writes,
		NameOf: loop.NameOf,
		Scheme: standalone.Scheme(Operator),
		Kinds:  []client.Object{&atv1alpha1.At{}},
		Each:   neverBack,
		Late:   []string{"ats", "pods"},

		Simulated: true,
	}
}

// TestSweep kills the operator at every write of every story, and shows the
// contract of doc.go to hold all the same.
func TestSweep(t *testing.T) {
	sweep := newSweep(t)
	sweep.Run(t, slices.Concat(stories(), []testkit.Scenario{keptGated()}, sweptProcesses(), sweptNodes())...)
	sweep.RequireAllWritesCut(t)
}

// sweptProcesses are stories of processes with all of their writes. The others are left to the simulation: a process
// waits for seconds in each run.
func sweptProcesses() []testkit.Scenario {
	return []testkit.Scenario{asProcess(succeeds()), asProcess(editedWhenPrepared()), losesItsProcess()}
}

// sweptNodes are those of runs whose node is found: what differs from other runs.
func sweptNodes() []testkit.Scenario {
	return []testkit.Scenario{asNode(editedWhenPrepared()), losesItsPlaceholder()}
}

// TestUnderPolicies plays stories where admission changes or refuses what is written.
func TestUnderPolicies(t *testing.T) { newSweep(t).Under(t, succeeds(), retries()) }

// TestSimulationIsReal: the operator writes the same to the simulation and to the real
// API server.
func TestSimulationIsReal(t *testing.T) { simulated.Compare(t, newSweep(t), stories()...) }
