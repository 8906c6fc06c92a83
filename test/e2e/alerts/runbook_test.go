//go:build e2e

package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/fairlead/test/e2e"
)

// runbook has the commands of a page: how to find out, and what to do.
type runbook struct{ findOut, do []string }

var block = regexp.MustCompile("(?ms)^( *)```bash\n(.*?)^ *```$")

// readRunbook reads the page that an alert leads to.
func readRunbook(t *testing.T, alert notice) runbook {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(e2e.Root, strings.TrimPrefix(alert.Annotations["runbook_url"], "https://fairlead.example.com/")))
	if err != nil {
		t.Fatal(err)
	}
	findOut, do, found := strings.Cut(string(page), "\n## What to do\n")
	if !found || !strings.Contains(findOut, "\n## How to find out\n") {
		t.Fatalf("the page of %s has other sections", alert.Labels["alertname"])
	}
	return runbook{blocks(findOut), blocks(do)}
}

// blocks are the commands of a part of a page. In a list they are indented.
func blocks(text string) []string {
	var all []string
	for _, match := range block.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll("\n"+match[2], "\n"+match[1], "\n"))
	}
	return all
}

// run runs commands as they stand in a page, with a shell that stops at the first that fails. They find something,
// unless someAbsent says that some of what they look for is not there.
func run(t *testing.T, alert notice, commands []string, variables map[string]string, someAbsent bool) {
	t.Helper()
	for _, command := range commands {
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", command)
		cmd.Env = os.Environ()
		for name, value := range variables {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		if err != nil || len(out) == 0 || !someAbsent && strings.Contains(string(out), "No resources found") {
			t.Errorf("%s: these commands of the runbook do not work (%v):%s\n%s", alert.Labels["alertname"], err, command, out)
		}
	}
}
