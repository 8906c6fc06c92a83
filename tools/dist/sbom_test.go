package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
)

// An SBOM can be read back, and has the program and every module in it.
func TestSBOM(t *testing.T) {
	program, err := os.Executable() // any Go program will do
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{options: options{version: current}, commit: "abc"}
	text, err := r.sbom(program, &v1.Platform{OS: "linux", Architecture: "amd64"})
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
	if want := len(info.Deps) + 2; len(packages) != want { // itself, and Go
		t.Errorf("%d packages, want %d", len(packages), want)
	}
	var described, dependencies int
	for _, relationship := range document.Relationships {
		if packages[relationship.RefB.ElementRefID] == nil {
			t.Errorf("%+v is not in it", relationship.RefB)
		}
		switch relationship.Relationship {
		case spdx.RelationshipDescribes:
			described++
			root := packages[relationship.RefB.ElementRefID]
			if len(root.PackageChecksums) != 1 || len(root.PackageChecksums[0].Value) != 64 || root.PackageName != info.Main.Path {
				t.Errorf("it describes %+v", root)
			}
		case spdx.RelationshipDependsOn:
			dependencies++
		}
	}
	if described != 1 || dependencies != len(info.Deps)+1 {
		t.Errorf("describes %d programs with %d dependencies", described, dependencies)
	}
}
