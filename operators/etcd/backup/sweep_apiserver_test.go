//go:build apiserver

package backup

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.Options{
		CRDs: []string{"../config/crd"},
		// All pods meet the strictest of Kubernetes' standards.
		NamespaceLabels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	})
}

// newSweep plays the stories on the real API server, where tries follow each other fast.
func newSweep(t *testing.T) *testkit.Sweep {
	usual := firstBackoff
	firstBackoff = 100 * time.Millisecond
	t.Cleanup(func() { firstBackoff = usual })
	return &testkit.Sweep{
		Start:  standalone.Start(operator),
		Writes: Static.Writes,
		NameOf: loop.NameOf,
		Scheme: standalone.Scheme(operator),
		Kinds:  []client.Object{&v1beta2.EtcdBackup{}},
		Each:   neverBack,
		Late:   []string{"etcdbackups", "pods"},

		Simulated: true,
	}
}

// TestSweep kills the operator at every write of every story, and shows the promise of doc.go to hold
// all the same.
func TestSweep(t *testing.T) {
	sweep := newSweep(t)
	sweep.Run(t, stories()...)
	sweep.RequireAllWritesCut(t)
}

// TestUnderPolicies plays stories where admission changes or refuses what is written.
func TestUnderPolicies(t *testing.T) { newSweep(t).Under(t, stories()[:2]...) }

// TestSimulationIsReal: the operator writes the same to the simulation and to the real API server. How
// many tries there are until somebody does something is a matter of speed.
func TestSimulationIsReal(t *testing.T) {
	isOnce := func(sc testkit.Scenario) bool {
		return slices.Contains([]string{"once", "proved", "refuted", "evicted", "says-nothing", "says-something-else", "cannot-start", "waits-for-others", "paused-at-first"}, sc.Name)
	}
	simulation().Compare(t, newSweep(t), slices.DeleteFunc(stories(), func(sc testkit.Scenario) bool { return !isOnce(sc) })...)
}
