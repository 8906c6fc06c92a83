//go:build apiserver

package memcached

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

func TestMain(m *testing.M) {
	readLimit = annotatedLimit
	testkit.Main(m, testkit.Options{
		CRDs:        []string{"config/crd"},
		Controllers: []string{"deployment-controller", "replicaset-controller", "statefulset-controller", "disruption-controller"},
		// All pods meet the strictest of Kubernetes' standards.
		NamespaceLabels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	})
}

// TestSweep kills the operator at every write of every story, and shows the
// promise of doc.go to hold all the same.
func TestSweep(t *testing.T) {
	defer func(lasts time.Duration) { missingLasts = lasts }(missingLasts)
	missingLasts = time.Second
	sweep := &testkit.Sweep{
		Start:  standalone.Start(Operator),
		Writes: kind.Writes,
		NameOf: loop.NameOf,
		Scheme: standalone.Scheme(Operator),
		Kinds:  []client.Object{&v1alpha1.Memcached{}},
		Late:   []string{"pods"},
	}
	sweep.Run(t, stories(restartersOfRuns{})...)
	sweep.RequireAllWritesCut(t)
}
