//go:build e2e

package etcd

import (
	"testing"

	"example.com/fairlead/test/e2e"
)

// TestOnlyOwnObjects: the operator's role allows more than it needs, because Kubernetes' rules know no owners; the
// admission policy takes the rest away.
func TestOnlyOwnObjects(t *testing.T) {
	t.Parallel()
	e2e.OnlyOwn(t, "etcd", "etcd.database.coreos.com/v1beta2/EtcdCluster",
		[]string{"pod", "persistentvolumeclaim", "secret", "service"},
		[]string{"pod", "persistentvolumeclaim", "secret", "service"},
		[]string{"pod", "persistentvolumeclaim"})
}
