//go:build apiserver

package webserver

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.Options{
		CRDs:        []string{"config/crd"},
		Controllers: []string{"deployment-controller", "replicaset-controller", "endpointslice-controller"},
		// All pods meet the strictest of Kubernetes' standards.
		NamespaceLabels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	})
}

// newSweep plays the stories on the real API server, with the real controllers of
// Deployments and ReplicaSets.
func newSweep() *testkit.Sweep {
	return &testkit.Sweep{
		Start:  standalone.Start(Operator),
		Writes: kind.Writes,
		NameOf: loop.NameOf,
		Scheme: standalone.Scheme(Operator),
		Kinds:  []client.Object{&webv1.WebServer{}},
		Late:   []string{"webservers", "deployments", "services"},

		Simulated: true,
	}
}

// TestSweep kills the operator at every write of every story, and shows the
// promise of doc.go to hold all the same.
func TestSweep(t *testing.T) {
	installOptionalKinds(t)
	sweep := newSweep()
	sweep.Run(t, stories(t)...)
	sweep.RequireAllWritesCut(t)
}

// TestUnderPolicies plays stories where admission changes or refuses what is written. None needs an optional kind, and
// the operators of the tests beside it would see one go.
func TestUnderPolicies(t *testing.T) {
	t.Parallel()
	newSweep().Under(t, comesUp(), isTriedAgain())
}

// TestSimulationIsReal: the operator writes the same to the simulation and to the real
// API server.
func TestSimulationIsReal(t *testing.T) {
	installOptionalKinds(t)
	simulation().Compare(t, newSweep(), withoutTheTutorialPort(stories(t))...)
}

// withoutTheTutorialPort has another Service hold the tutorial's port. On the real API
// server the stories share the ports, and only one of them would get it.
func withoutTheTutorialPort(stories []testkit.Scenario) []testkit.Scenario {
	for i := range stories {
		before := stories[i].Before
		stories[i].Before = func(ctx context.Context, r *testkit.Run) error {
			holder := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "holds-the-port"},
				Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: tutorialNodePort}}},
			}
			if err := r.Client.Create(ctx, holder); err != nil && !apierrors.IsAlreadyExists(err) && !isPortTaken(err) {
				return err
			}
			if before == nil {
				return nil
			}
			return before(ctx, r)
		}
	}
	return stories
}
