//go:build apiserver

package webserver

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.Options{
		CRDs:        []string{"config/crd"},
		Controllers: []string{"deployment-controller", "replicaset-controller"},
		// All pods meet the strictest of Kubernetes' standards.
		NamespaceLabels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	})
}

// TestSweep kills the operator at every write of every story, and shows the
// promise of doc.go to hold all the same.
func TestSweep(t *testing.T) {
	installOptionalKinds(t)
	sweep := &testkit.Sweep{
		Start:  standalone.Start(Operator),
		Writes: kind.Writes,
		NameOf: loop.NameOf,
		Scheme: standalone.Scheme(Operator),
		Kinds:  []client.Object{&webv1.WebServer{}},
		Late:   []string{"webservers", "deployments", "services"},
	}
	sweep.Run(t, stories(t)...)
	sweep.RequireAllWritesCut(t)
}
