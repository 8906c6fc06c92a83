//go:build apiserver

package backup

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

// TestFields: whatever a field is changed to is refused, works or is explained.
func TestFields(t *testing.T) {
	(&testkit.Fields{
		CRD:    "../config/crd/etcd.database.coreos.com_etcdbackups.yaml",
		Sample: "../config/samples/etcdbackup_all_fields.yaml",
		Start:  standalone.Start(operator),
		Object: func(namespace, name string) client.Object {
			b := aBackup()
			b.Namespace, b.Name, b.UID, b.Generation = namespace, name, "", 0
			return b
		},
		Once: true,
	}).Run(t)
}
