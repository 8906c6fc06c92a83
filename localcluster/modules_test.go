package main

import (
	"os"
	"regexp"
	"testing"
)

// What this module and the operators' both use, Go compiles once only if it is of
// the same version, and so are its dependencies.
func TestModulesAreTheOperators(t *testing.T) {
	const notPublished = "v0.0.0" // Kubernetes names its own parts so, and go.mod replaces them
	theirs := required(t, "../go.mod")
	for module, version := range required(t, "go.mod") {
		if want, ok := theirs[module]; ok && version != want && version != notPublished {
			t.Errorf("%s is %s here, and %s in the operators' go.mod: go get %[1]s@VERSION where it is older", module, version, want)
		}
	}
}

var requirement = regexp.MustCompile(`(?m)^\t(?:require )?(\S+) (v\S+)(?: // indirect)?$`)

func required(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, match := range requirement.FindAllStringSubmatch(string(text), -1) {
		versions[match[1]] = match[2]
	}
	if len(versions) < 10 {
		t.Fatalf("%s requires %d modules", file, len(versions))
	}
	return versions
}
