//go:build e2e

package at

import (
	"fmt"
	"strings"
	"testing"

	"example.com/fairlead/test/e2e"
)

// TestKubectlOnATerminal has what the plugin does only there: lines and screens that change, colours, and questions.
func TestKubectlOnATerminal(t *testing.T) {
	e2e.InstallPlugin(t)
	ns := e2e.NewNamespace(t)
	t.Setenv("NS", ns)
	// Narrower than the line that counts down, and not high enough for all Ats.
	const columns, lines = 50, 10
	terminal := e2e.NewTerminal(t, columns, lines)

	terminal.Type("kubectl at --in=8s --name=soon -n $NS -- sleep 1000; clear; kubectl at wait soon -n $NS")
	terminal.Shows(`\Asoon runs in [5-7]s, [^\n]*\z`)
	terminal.Shows(`\Asoon runs in [1-4]s, [^\n]*\z`)
	terminal.Shows(`\Asoon is RUNNING, since \d+s[^\n]*\z`)
	terminal.Interrupt()
	if screen := terminal.Shows(`interrupted\n\$`); strings.Contains(screen, "since") {
		t.Errorf("the line that changes is still there:\n%s", screen)
	}
	terminal.Type("echo code $?")
	terminal.Shows(`\ncode 130\n`)

	terminal.Clear()
	terminal.Type("kubectl at rm soon -n $NS")
	terminal.Shows(`Continue\? \[y/N\]`)
	terminal.Type("n")
	terminal.Shows("nothing was done")
	terminal.Type("kubectl at rm soon -n $NS; clear; kubectl at list -n $NS")
	terminal.Type("y")
	terminal.Shows(`\A[^\n]*No Ats`)

	for i := range lines {
		e2e.Kubectl(t, "at", "-n", ns, fmt.Sprintf("--name=later-%d", i), "--in=1h", "--", "true")
	}
	terminal.Clear()
	terminal.Type("kubectl fairlead status --watch -n $NS")
	terminal.Shows(`\ANAME [^\n]*\n(at/later-\d+ +Scheduled[^\n]*\n){7}… and 3 lines more\z`)
	e2e.Kubectl(t, "at", "-n", ns, "--name=broken", "--in=1s", "--", "false")
	terminal.Shows(`\ANAME [^\n]*\nat/broken +CommandFailed[^\n]*\n(at/later-\d+ +Scheduled[^\n]*\n){6}… and 4 lines more\z`)
	terminal.Interrupt()
	terminal.Shows(`\n(\^C)?error: interrupted\n`)
}
