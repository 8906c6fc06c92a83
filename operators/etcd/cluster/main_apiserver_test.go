//go:build apiserver

package cluster

import (
	"testing"

	"example.com/fairlead/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.Options{
		CRDs: []string{"../config/crd"},
		// A volume that a pod uses is deleted after the pod.
		Controllers: []string{"persistentvolumeclaim-protection-controller"},
		// All pods meet the strictest of Kubernetes' standards.
		NamespaceLabels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	})
}
