package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
)

// sbomFile is where the SBOM of a platform's image goes, in the output folder.
func sbomFile(version string, platform *v1.Platform) string {
	return fmt.Sprintf("sbom/fairlead-v%s-%s-%s.spdx.json", version, platform.OS, platform.Architecture)
}

// sbom lists, in SPDX 2.3, what the Go linker put into the programs: the modules
// with their versions, and Go itself. There is nothing else in the image.
func (r *release) sbom(platform *v1.Platform, programs ...string) ([]byte, error) {
	name := fmt.Sprintf("fairlead-%s-%s-%s", r.version, platform.OS, platform.Architecture)
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		CreationInfo: &spdx.CreationInfo{
			Created:  r.date.Format("2006-01-02T15:04:05Z"),
			Creators: []spdx.Creator{{CreatorType: "Tool", Creator: "fairlead-dist"}, {CreatorType: "Organization", Creator: "Fairlead"}},
		},
	}
	all := sha256.New()
	listed := map[spdx.ElementID]bool{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, err
		}
		content, err := os.ReadFile(program)
		if err != nil {
			return nil, err
		}
		all.Write(content)
		root := goPackage(info.Path, "v"+r.version)
		root.PackageChecksums = []spdx.Checksum{{Algorithm: spdx.SHA256, Value: digestOf(content)}}
		root.PackageComment = "the program " + platform.String() + " of commit " + r.commit
		document.Packages = append(document.Packages, root)
		document.Relationships = append(document.Relationships, related("DOCUMENT", spdx.RelationshipDescribes, root.PackageSPDXIdentifier))
		for _, module := range modulesOf(info) {
			if !listed[module.PackageSPDXIdentifier] {
				listed[module.PackageSPDXIdentifier] = true
				document.Packages = append(document.Packages, module)
			}
			document.Relationships = append(document.Relationships,
				related(root.PackageSPDXIdentifier, spdx.RelationshipDependsOn, module.PackageSPDXIdentifier))
		}
	}
	document.DocumentNamespace = "https://fairlead.example.com/spdx/" + name + "-" + hex.EncodeToString(all.Sum(nil))
	var text bytes.Buffer
	err := spdxjson.Write(document, &text, spdxjson.Indent("  "))
	return text.Bytes(), err
}

// modulesOf are what the Go linker put into a program.
func modulesOf(info *buildinfo.BuildInfo) []*spdx.Package {
	var all []*spdx.Package
	modules := append([]*debug.Module{{Path: "stdlib", Version: info.GoVersion}}, info.Deps...)
	for _, module := range modules {
		if module.Replace != nil {
			module = module.Replace
		}
		dependency := goPackage(module.Path, module.Version)
		if module.Sum != "" {
			dependency.PackageComment = "go.sum " + module.Sum
		}
		all = append(all, dependency)
	}
	return all
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func related(from spdx.ElementID, how string, to spdx.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: spdx.DocElementID{ElementRefID: from}, Relationship: how, RefB: spdx.DocElementID{ElementRefID: to},
	}
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func goPackage(path, version string) *spdx.Package {
	const unknown = "NOASSERTION"
	return &spdx.Package{
		PackageSPDXIdentifier: spdx.ElementID(notInID.ReplaceAllString(path+"-"+version, "-")),
		PackageName:           path, PackageVersion: version,
		PackageSupplier:         &spdx.Supplier{Supplier: unknown},
		PackageDownloadLocation: unknown, PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: spdx.CategoryPackageManager, RefType: spdx.PackageManagerPURL, Locator: "pkg:golang/" + path + "@" + version,
		}},
	}
}
