//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// InstallPlugin has kubectl find the plugin in PATH for the time of a test, as docs/kubectl.md installs it. PATH is
// that of the whole process, so the test cannot be parallel. Fairlead and FairleadRefuses do without it.
func InstallPlugin(t testing.TB) {
	t.Helper()
	t.Setenv("PATH", pathOfPlugin(t))
}

// pathOfPlugin is PATH with a folder that has the plugin.
func pathOfPlugin(t testing.TB) string {
	t.Helper()
	program, err := filepath.Abs(filepath.Join(Root, "bin", "kubectl-fairlead"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range []string{"kubectl-at", "kubectl_complete-at", "kubectl-fairlead", "kubectl_complete-fairlead"} {
		if err := os.Symlink(program, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder + string(os.PathListSeparator) + os.Getenv("PATH")
}

func tryFairlead(t testing.TB, namespace string, args []string) (string, error) {
	t.Helper()
	all := append(append([]string{"fairlead"}, args...), "-n", namespace)
	return tryKubectl([]string{"PATH=" + pathOfPlugin(t)}, "", all...)
}

// Fairlead runs `kubectl fairlead` in a namespace, which must succeed and print this, and returns what it prints.
func Fairlead(t testing.TB, namespace, want string, args ...string) string {
	t.Helper()
	out, err := tryFairlead(t, namespace, args)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, want) {
		t.Errorf("kubectl fairlead %s: want %q in\n%s", strings.Join(args, " "), want, out)
	}
	t.Logf("$ kubectl fairlead %s\n%s", strings.Join(args, " "), out)
	return out
}

// FairleadRefuses runs `kubectl fairlead` in a namespace, which must fail with these words, and returns what it prints.
func FairleadRefuses(t testing.TB, namespace, want string, args ...string) string {
	t.Helper()
	out, err := tryFairlead(t, namespace, args)
	if err == nil || !strings.Contains(out, want) {
		t.Errorf("kubectl fairlead %s: %v, want an error with %q:\n%s", strings.Join(args, " "), err, want, out)
	}
	t.Logf("$ kubectl fairlead %s\n%s", strings.Join(args, " "), out)
	return out
}
