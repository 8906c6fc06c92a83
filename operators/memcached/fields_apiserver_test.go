//go:build apiserver

package memcached

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
		CRD:    "config/crd/cache.example.com_memcacheds.yaml",
		Sample: "config/samples/memcached_all_fields.yaml",
		Start:  standalone.Start(Operator),
		Object: func(namespace, name string) client.Object {
			mc := aPool(size(1))
			mc.Namespace, mc.Name, mc.UID, mc.Generation = namespace, name, "", 0
			return mc
		},
	}).Run(t)
}
