//go:build apiserver

package memcached

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
	"example.com/fairlead/operators/memcached/pool"
)

func TestMain(m *testing.M) {
	readLimit = annotatedLimit
	testkit.Main(m, testkit.Options{
		CRDs:        []string{"config/crd"},
		Controllers: []string{"deployment-controller", "replicaset-controller", "statefulset-controller", "disruption-controller", "endpointslice-controller"},
		// All pods meet the strictest of Kubernetes' standards.
		NamespaceLabels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	})
}

// eitherRestarts are the restarts of runs, whether simulated or on a real API server.
type eitherRestarts struct{}

func (eitherRestarts) in(r *testkit.Run) restarts {
	if _, isSimulated := r.Own.(*restartingKubelet); isSimulated {
		return simulatedRestarts{}
	}
	return restartersOfRuns{}
}

func (e eitherRestarts) begin(ctx context.Context, r *testkit.Run) { e.in(r).begin(ctx, r) }

func (e eitherRestarts) of(r *testkit.Run) (names []string, unavailable int) { return e.in(r).of(r) }

// newSweep plays the stories on the real API server, where servers that are missing are
// looked for soon: no other test may run beside its own.
func newSweep(t *testing.T) *testkit.Sweep {
	usual := pool.MissingLasts
	pool.MissingLasts = time.Second
	t.Cleanup(func() { pool.MissingLasts = usual })
	return &testkit.Sweep{
		Start:  standalone.Start(Operator),
		Writes: kind.Writes,
		NameOf: loop.NameOf,
		Scheme: standalone.Scheme(Operator),
		Kinds:  []client.Object{&v1alpha1.Memcached{}},
		Late:   []string{"pods"},

		Simulated: true,
	}
}

// TestSweep kills the operator at every write of every story, and shows the
// promise of doc.go to hold all the same.
func TestSweep(t *testing.T) {
	sweep := newSweep(t)
	sweep.Run(t, stories(restartersOfRuns{})...)
	sweep.RequireAllWritesCut(t)
}

// TestUnderPolicies plays stories where admission changes or refuses what is written.
func TestUnderPolicies(t *testing.T) {
	newSweep(t).Under(t, stories(restartersOfRuns{})[:2]...)
}

// TestSimulationIsReal: the operator writes the same to the simulation and to the real
// API server.
func TestSimulationIsReal(t *testing.T) {
	all := stories(eitherRestarts{})
	i := slices.IndexFunc(all, func(sc testkit.Scenario) bool { return sc.Name == "takes-over" })
	all[i].Pods = func(pod *corev1.Pod) testkit.Outcome { // a mark that a server gets comes before it is ready, on a slow API server, too
		server := behaves(pod)
		server.StartAfter = 3 * time.Second
		return server
	}
	simulation(t).Compare(t, newSweep(t), all...)
}
