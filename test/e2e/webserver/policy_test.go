//go:build e2e

package webserver

import (
	"testing"

	"example.com/fairlead/test/e2e"
)

// TestOnlyOwnObjects: the operator's role allows more than it needs, because Kubernetes' rules know no owners; the
// admission policy takes the rest away.
func TestOnlyOwnObjects(t *testing.T) {
	e2e.OnlyOwn(t, "webserver", "my.domain/v1/WebServer",
		[]string{"configmap", "secret", "service", "deployment"},
		[]string{"configmap", "secret", "service", "deployment"},
		[]string{"configmap", "secret"})
}
