//go:build e2e

package at

import (
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestKubectlAt has kubectl find the plugin, and its completion, in PATH, as docs/kubectl.md installs them.
func TestKubectlAt(t *testing.T) {
	e2e.InstallPlugin(t)
	ns := e2e.NewNamespace(t)
	kubectlAt := func(want string, args ...string) {
		t.Helper()
		if out := e2e.Kubectl(t, append([]string{"at", "-n", ns}, args...)...); !strings.Contains(out, want) {
			t.Errorf("kubectl at %s: %q, want %q in it", strings.Join(args, " "), out, want)
		}
	}

	kubectlAt("at.at.example.com/soon created\nRuns ", "--in", pace.Scale(5*time.Second).String(), "--name=soon", "--", "echo hello world")
	kubectlAt("at.at.example.com/friday created\nRuns Friday ", "08:00", "friday", "+", "1", "week", "--tz=Europe/Berlin", "--name=friday", "--", "sh", "-c", "echo it is $0; exit 4", "friday")
	kubectlAt("PENDING", "list")
	if out := e2e.Kubectl(t, "__complete", "at", "-n", ns, "rm", "so"); !strings.Contains(out, "\nsoon\tPENDING ") {
		t.Errorf("kubectl completes soon as %q", out)
	}
	kubectlAt("soon is DONE: ", "wait", "soon", "--timeout=2m")
	kubectlAt("hello world\n", "logs", "soon")

	kubectlAt("friday suspended\n", "suspend", "friday")
	kubectlAt("friday runs now\n", "run-now", "friday")
	out, err := e2e.TryKubectl("", "fairlead", "at", "-n", ns, "wait", "friday", "--timeout=2m")
	if err == nil || !strings.Contains(err.Error(), "exit status 4") || !strings.Contains(out, "friday is FAILED: ") {
		t.Errorf("kubectl fairlead at wait: %v", err)
	}
	kubectlAt("it is friday\n", "logs", "friday")
	kubectlAt("soon removed\nat.at.example.com/friday removed\n", "rm", "soon", "friday")
}
