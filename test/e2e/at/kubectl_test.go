//go:build e2e

package at

import (
	"os"
	"os/exec"
	"path/filepath"
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
	// A day's name is refused on that day, whichever it is there by now.
	day := time.Now().UTC().AddDate(0, 0, 3).Weekday().String()
	kubectlAt("at.at.example.com/later created\nRuns "+day+" ", "08:00", day, "+", "1", "week", "--tz=Europe/Berlin", "--name=later", "--", "sh", "-c", "echo it is $0; exit 4", "later")
	kubectlAt("PENDING", "list")
	if out := e2e.Kubectl(t, "__complete", "at", "-n", ns, "rm", "so"); !strings.Contains(out, "\nsoon\tPENDING ") {
		t.Errorf("kubectl completes soon as %q", out)
	}
	kubectlAt("soon is DONE: ", "wait", "soon", "--timeout=2m")
	kubectlAt("hello world\n", "logs", "soon")

	fairlead := func(want string, args ...string) {
		t.Helper()
		if out := e2e.Kubectl(t, append([]string{"fairlead", "-n", ns}, args...)...); !strings.Contains(out, want) {
			t.Errorf("kubectl fairlead %s: %q, want %q in it", strings.Join(args, " "), out, want)
		}
	}
	fairlead("later paused\n", "pause", "at/later")
	fairlead("later resumed\n", "resume", "at/later")
	report(t, ns)

	kubectlAt("later suspended\n", "suspend", "later")
	kubectlAt("later runs now\n", "run-now", "later")
	out, err := e2e.TryKubectl("", "fairlead", "at", "-n", ns, "wait", "later", "--timeout=2m")
	if err == nil || !strings.Contains(err.Error(), "exit status 4") || !strings.Contains(out, "later is FAILED: ") {
		t.Errorf("kubectl fairlead at wait: %v", err)
	}
	kubectlAt("it is later\n", "logs", "later")
	kubectlAt("soon removed\nat.at.example.com/later removed\n", "rm", "soon", "later")
}

// report has an archive with a log of the operator, which needs a kubelet, and without what commands were given and printed.
func report(t *testing.T, ns string) {
	t.Helper()
	folder := t.TempDir()
	e2e.Kubectl(t, "fairlead", "-n", ns, "report", "--file", filepath.Join(folder, "report.tar.gz"))
	if out, err := exec.Command("tar", "-C", folder, "-xzf", filepath.Join(folder, "report.tar.gz")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	logs, err := filepath.Glob(filepath.Join(folder, "*/namespaces/*/logs/*controller-manager*/manager.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no log of an operator is in the report: %v", err)
	}
	if text, err := os.ReadFile(logs[0]); err != nil || !strings.Contains(string(text), ns) {
		t.Errorf("%s says nothing of namespace %s: %v", logs[0], ns, err)
	}
	if out, err := exec.Command("grep", "-r", "hello world", folder).CombinedOutput(); err == nil {
		t.Errorf("the report has what a command was given: %s", out)
	}
}
