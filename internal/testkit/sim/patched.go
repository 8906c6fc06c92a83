package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/draw"
)

// plantedHistories are how many a planted flaw may take, of all stories that are played.
const plantedHistories = "10000"

// FindsPlanted plants a flaw in the package that is being tested, and requires that its
// simulation finds it: that test, which may name a subtest as in "TestSimulation/retries",
// has to fail, and what it says has to contain want, also when it is played once more.
//
// The patch is one as git makes them, with paths from the root of the repository. Nothing
// in the repository is changed: the compiler is given other files in place of those that the
// patch changes.
func FindsPlanted(t *testing.T, patch, test, want string) {
	t.Helper()
	began := time.Now()
	overlay, program := overlayOf(t, patch), filepath.Join(t.TempDir(), "flawed.test")
	if !draw.Takes(patch) {
		t.Skip("it fits; that it is found is drawn for another landing")
	}
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-s -w", "-overlay="+overlay, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", patch, err, out)
	}
	compiled := time.Since(began)
	run := func(variable, value string) string {
		cmd := exec.CommandContext(t.Context(), program, "-test.failfast", "-test.run=^"+strings.ReplaceAll(test, "/", "$/^")+"$")
		cmd.Env = append(os.Environ(), historiesVariable+"=", replayVariable+"=", seedVariable+"=", draw.Seed+"=", variable+"="+value)
		out, err := cmd.CombinedOutput()
		switch {
		case err == nil:
			t.Fatalf("%s does not find the flaw of %s", test, patch)
		case !strings.Contains(string(out), want):
			t.Fatalf("%s, with the flaw of %s, does not say %q, but:\n%s", test, patch, want, out)
		}
		return string(out)
	}
	found := run(historiesVariable, plantedHistories)
	replay := regexp.MustCompile(`once more: ` + replayVariable + `='([^']*)'`).FindStringSubmatch(found)
	if replay == nil {
		t.Fatalf("there is no command in\n%s", found)
	}
	t.Logf("compiled in %.1f s, and found in %.1f s: %s", compiled.Seconds(), (time.Since(began) - compiled).Seconds(), replay[1])
	run(replayVariable, replay[1])
}

// overlayOf applies a patch to copies of the files that it is about, and returns the file
// that has the compiler use them.
func overlayOf(t *testing.T, patch string) string {
	t.Helper()
	text, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	patch, err = filepath.Abs(patch)
	if err != nil {
		t.Fatal(err)
	}
	copies := t.TempDir()
	root, err := testkit.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^--- a/(\S+)`).FindAllStringSubmatch(string(text), -1) {
		name := filepath.FromSlash(match[1])
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(copies, name)
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, content, 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, name)] = copied
	}
	// Lines around the change may have changed since: the fewer have to match, the longer
	// the patch lasts.
	apply := exec.CommandContext(t.Context(), "git", "apply", "-C1", patch)
	apply.Dir = copies
	// The copies are in no repository, whatever the test is started by.
	apply.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(copies, "none"), "GIT_CEILING_DIRECTORIES="+filepath.Dir(copies))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%s does not fit any more: %v\n%s", patch, err, out)
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(copies, "overlay.json")
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
