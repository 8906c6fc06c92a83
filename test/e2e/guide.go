//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// GuideCommands are the blocks of commands, ```bash, in a section of a page of docs; of the whole page if section is
// empty. There must be so many of them at least.
func GuideCommands(t testing.TB, page, section string, least int) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Root, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if section != "" {
		_, text, _ = strings.Cut(text, "\n## "+section+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
	}
	var all []string
	for {
		_, after, found := strings.Cut(text, "```bash\n")
		if !found {
			break
		}
		commands, rest, _ := strings.Cut(after, "```")
		all, text = append(all, commands), rest
	}
	if len(all) < least {
		t.Fatalf("docs/%s %s has %d blocks of commands, want %d", page, section, len(all), least)
	}
	return all
}

// RunGuide runs commands of a guide as its reader does, in a namespace that is the default one, and returns what they print.
func RunGuide(t testing.TB, namespace, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig(t, namespace))
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", commands, out)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// kubeconfig is the cluster's, with a namespace as the default.
func kubeconfig(t testing.TB, namespace string) string {
	t.Helper()
	config, err := TryKubectl("", "config", "view", "--raw", "--flatten", "--minify")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	Kubectl(t, "--kubeconfig", file, "config", "set-context", "--current", "--namespace="+namespace)
	return file
}

// LeavesByGuide deletes an object as a section of docs/moving/leaving.md has it, word for word: its pods stay as they
// are, and nothing of the kinds that were made, so many at least, has an owner or the operator's label any more.
func LeavesByGuide(t testing.TB, namespace, section, made string, least int) {
	t.Helper()
	get := func(what, fields string) string {
		t.Helper()
		return Kubectl(t, "get", what, "-n", namespace, "-o", `jsonpath={range .items[*]}{.metadata.name} `+fields+`{"\n"}{end}`)
	}
	uids := func() string { return get("pods", `{.metadata.uid} {.status.containerStatuses[*].restartCount}`) }
	before := uids()
	for _, commands := range GuideCommands(t, "moving/leaving.md", section, 2) {
		RunGuide(t, namespace, commands)
	}
	time.Sleep(5 * time.Second) // the garbage collector or the operator could still do something
	if after := uids(); after != before || before == "" {
		t.Errorf("the pods were\n%s\nand are\n%s", before, after)
	}
	if owners := get(made, `{.metadata.ownerReferences}{.metadata.labels.app\.kubernetes\.io/managed-by}`); strings.Contains(owners, "operator") ||
		strings.Contains(owners, "uid") || strings.Count(owners, "\n") < least {
		t.Errorf("what is left:\n%s", owners)
	}
}
