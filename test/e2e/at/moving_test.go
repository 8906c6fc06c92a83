//go:build e2e

package at

import (
	"strings"
	"testing"

	"example.com/fairlead/test/e2e"
)

// TestMoveAt follows docs/moving/at.md word for word.
func TestMoveAt(t *testing.T) {
	ns := e2e.NewNamespace(t)
	want := []string{"cronjob.batch/report patched", "\nthe report\n", "PENDING"}
	for i, commands := range e2e.GuideCommands(t, "moving/at.md", "", len(want)) {
		if out := e2e.RunGuide(t, ns, commands); !strings.Contains(out, want[i]) {
			t.Errorf("it does not print %q", want[i])
		}
	}
}
