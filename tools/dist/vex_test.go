package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The document is about the image by its digest, in the words of govulncheck, and looks at what is in the image.
func TestVEX(t *testing.T) {
	r := &release{options: options{repo: repo, out: t.TempDir(), image: base + "@sha256:abc", vulnerabilities: "file:///known"}, tree: repo}
	r.govulncheck = filepath.Join(t.TempDir(), "govulncheck")
	const script = `#!/bin/sh
echo '{"author": "Unknown Author", "arguments": "'"$*"'", "statements": [
  {"status": "affected", "products": [{"@id": "Unknown Product"}]}, {"status": "not_affected", "products": [{"@id": "Unknown Product"}]}]}'
`
	if err := os.WriteFile(r.govulncheck, []byte(script), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	if err := r.writeVEX(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.out, vexFile))
	if err != nil {
		t.Fatal(err)
	}
	type product struct {
		ID string `json:"@id"`
	}
	var document struct {
		Author, Arguments string
		Statements        []struct{ Products []product }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	want := []product{{"pkg:oci/fairlead@sha256%3Aabc?repository_url=" + base}}
	if document.Author != "Fairlead" || len(document.Statements) != 2 || !slices.Equal(document.Statements[0].Products, want) ||
		!slices.Equal(document.Statements[1].Products, want) {
		t.Errorf("the document is %s", text)
	}
	if want := "-format openvex -db file:///known ./cmd/fairlead ./cmd/fairlead-at-start ./cmd/fairlead-etcd-agent"; document.Arguments != want {
		t.Errorf("govulncheck %s, want %s", document.Arguments, want)
	}
}
