//go:build e2e

package nodes

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/fairlead/test/e2e"
)

// TestWalkthrough follows "Try it" of docs/nodes.md word for word.
func TestWalkthrough(t *testing.T) {
	nodes := threeNodes(t)
	managerTo(t, nodes)
	namespace := e2e.NewNamespace(t)
	guide, err := os.ReadFile(filepath.Join(e2e.Root, "docs", "nodes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## Try it\n")
	blocks := strings.Split(section, "```bash\n")[1:]
	if len(blocks) != 5 {
		t.Fatalf("the section has %d blocks of commands", len(blocks))
	}
	var script strings.Builder // the blocks have a variable in common
	for _, block := range blocks {
		commands, _, _ := strings.Cut(block, "```")
		script.WriteString(commands)
	}
	out := run(t, "bash", "-euxo", "pipefail", "-c", "kubectl config set-context --current --namespace="+namespace+"\n"+script.String())
	for _, want := range []string{
		"\nRUNNING, attempt 1\n", "\n(DeletionByPodGC|ResultUnknown), attempt 1\n", `its node "`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the output lacks %q", want)
		}
	}
}

// run runs a program in the folder of the repository, with a copy of the kubeconfig.
func run(t testing.TB, program string, args ...string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte(e2e.Kubectl(t, "config", "view", "--raw", "--flatten")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = e2e.Root, append(os.Environ(), "KUBECONFIG="+config)
	out, err := cmd.CombinedOutput()
	t.Logf("%s %s\n%s", program, strings.Join(args, " "), out)
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	return string(out)
}
