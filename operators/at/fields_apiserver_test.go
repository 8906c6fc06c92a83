//go:build apiserver

package at

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

// TestFields: whatever a field is changed to is refused, works or is explained.
func TestFields(t *testing.T) {
	(&testkit.Fields{
		CRD:    "config/crd/at.example.com_ats.yaml",
		Sample: "config/samples/at_all_fields.yaml",
		Start:  standalone.Start(Operator),
		Object: func(namespace, name string) client.Object {
			at := anAt(spec(func(s *atv1alpha1.AtSpec) { s.Schedule = "2099-09-09T07:05:59Z" }))
			at.Namespace, at.Name, at.UID, at.Generation, at.Status = namespace, name, "", 0, atv1alpha1.AtStatus{}
			return at
		},
		Once: true,
	}).Run(t)
}
