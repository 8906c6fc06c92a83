//go:build e2e

package at

import (
	"testing"

	"example.com/fairlead/test/e2e"
)

// TestOnlyOwnObjects: the operator's role allows more than it needs, because Kubernetes' rules know no owners; the
// admission policy takes the rest away.
func TestOnlyOwnObjects(t *testing.T) {
	e2e.OnlyOwn(t, "at", "at.example.com/v1alpha1/At",
		[]string{"pod"}, []string{"pod"}, []string{"pod", "at"})
}
