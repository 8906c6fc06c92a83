//go:build apiserver

package webserver

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

// TestFields: whatever a field is changed to is refused, works or is explained,
// and the old value brings the old state back.
func TestFields(t *testing.T) {
	(&testkit.Fields{
		CRD:       "config/crd/my.domain_webservers.yaml",
		Sample:    "config/samples/webserver_all_fields.yaml",
		Exclusive: []string{"spec", "service", "nodePort"},
		Start:     standalone.Start(Operator),
		Object: func(namespace, name string) client.Object {
			ws := aWeb()
			ws.Namespace, ws.Name, ws.UID, ws.Generation, ws.Spec.Replicas = namespace, name, "", 0, new(int32(1))
			return ws
		},
	}).Run(t)
}
