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

// TestLeaveAt: without its At, the command runs to its end.
func TestLeaveAt(t *testing.T) {
	ns := e2e.NewNamespace(t)
	e2e.Apply(t, ns, `
apiVersion: at.example.com/v1alpha1
kind: At
metadata: {name: report}
spec: {schedule: "2020-01-01T00:00:00Z", image: "busybox:1.35.0", command: "sleep 12; echo the end"}
`)
	e2e.Kubectl(t, "wait", "-n", ns, "ats.at.example.com/report", "--for=jsonpath={.status.phase}=RUNNING", e2e.Patience)
	e2e.Kubectl(t, "wait", "-n", ns, "pod/report", "--for=condition=Ready", e2e.Patience)
	e2e.LeavesByGuide(t, ns, "From an At", "pods", 1)
	e2e.Kubectl(t, "wait", "-n", ns, "pod/report", "--for=jsonpath={.status.phase}=Succeeded", e2e.Patience)
	if out := e2e.Kubectl(t, "logs", "-n", ns, "report"); !strings.Contains(out, "the end") {
		t.Errorf("it printed %q", out)
	}
}
