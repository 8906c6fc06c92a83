package main

import (
	"bytes"
	"debug/buildinfo"
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
)

// An SBOM can be read back, and has the programs and every module in them.
func TestSBOM(t *testing.T) {
	program, err := os.Executable() // any Go programs will do
	if err != nil {
		t.Fatal(err)
	}
	other, err := exec.LookPath("go") // of the standard library alone
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{options: options{version: current}, commit: "abc"}
	text, err := r.sbom(&v1.Platform{OS: "linux", Architecture: "amd64"}, program, other)
	if err != nil {
		t.Fatal(err)
	}
	document, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if document.SPDXVersion != "SPDX-2.3" || document.DataLicense != "CC0-1.0" || document.DocumentName != "fairlead-"+current+"-linux-amd64" {
		t.Errorf("%s, %s, %s", document.SPDXVersion, document.DataLicense, document.DocumentName)
	}
	packages := map[spdx.ElementID]*spdx.Package{}
	for _, p := range document.Packages {
		if packages[p.PackageSPDXIdentifier] != nil {
			t.Errorf("%s is there twice", p.PackageSPDXIdentifier)
		}
		packages[p.PackageSPDXIdentifier] = p
		if len(p.PackageExternalReferences) != 1 ||
			p.PackageExternalReferences[0].Locator != "pkg:golang/"+p.PackageName+"@"+p.PackageVersion {
			t.Errorf("%s %s: %+v", p.PackageName, p.PackageVersion, p.PackageExternalReferences)
		}
	}
	if want := len(info.Deps) + 3; len(packages) != want { // themselves, and Go
		t.Errorf("%d packages, want %d", len(packages), want)
	}
	var described []string
	dependencies := map[spdx.ElementID]int{}
	for _, relationship := range document.Relationships {
		if packages[relationship.RefB.ElementRefID] == nil {
			t.Errorf("%+v is not in it", relationship.RefB)
		}
		switch relationship.Relationship {
		case spdx.RelationshipDescribes:
			root := packages[relationship.RefB.ElementRefID]
			described = append(described, root.PackageName)
			if len(root.PackageChecksums) != 1 || len(root.PackageChecksums[0].Value) != 64 {
				t.Errorf("it describes %+v", root)
			}
		case spdx.RelationshipDependsOn:
			dependencies[relationship.RefA.ElementRefID]++
		}
	}
	if !slices.Equal(described, []string{info.Path, "cmd/go"}) {
		t.Errorf("describes %v", described)
	}
	counts := slices.Sorted(maps.Values(dependencies))
	if !slices.Equal(counts, []int{1, len(info.Deps) + 1}) {
		t.Errorf("the programs have %v dependencies", counts)
	}
}
