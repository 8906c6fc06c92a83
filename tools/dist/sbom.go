package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// sbomFile is where the SBOM of a platform's image goes, in the output folder.
func sbomFile(version string, platform *v1.Platform) string {
	return fmt.Sprintf("sbom/fairlead-v%s-%s-%s.spdx.json", version, platform.OS, platform.Architecture)
}

// The parts of SPDX 2.3 that say what a program was built from.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID        string         `json:"SPDXID"`
		Name      string         `json:"name"`
		Version   string         `json:"versionInfo"`
		Supplier  string         `json:"supplier"`
		Download  string         `json:"downloadLocation"`
		Analyzed  bool           `json:"filesAnalyzed"`
		Concluded string         `json:"licenseConcluded"`
		Declared  string         `json:"licenseDeclared"`
		Copyright string         `json:"copyrightText"`
		Checksums []spdxChecksum `json:"checksums,omitempty"`
		Comment   string         `json:"comment,omitempty"`
		Refs      []spdxRef      `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

// sbom lists what the Go linker put into a program: the modules with their
// versions, and Go itself. There is nothing else in the image.
func (r *release) sbom(program string, platform *v1.Platform) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	name := fmt.Sprintf("fairlead-%s-%s-%s", r.version, platform.OS, platform.Architecture)

	root := goPackage(info.Main.Path, "v"+r.version)
	root.Checksums = []spdxChecksum{{Algorithm: "SHA256", Value: digest}}
	root.Comment = "the program " + platform.String() + " of commit " + r.commit
	document := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: "https://fairlead.example.com/spdx/" + name + "-" + digest,
		Creation: spdxCreation{
			Created:  r.date.Format("2006-01-02T15:04:05Z"),
			Creators: []string{"Tool: fairlead-dist", "Organization: Fairlead"},
		},
		Packages:      []spdxPackage{root},
		Relationships: []spdxRelationship{{Element: "SPDXRef-DOCUMENT", Type: "DESCRIBES", Related: root.ID}},
	}
	modules := append([]*debug.Module{{Path: "stdlib", Version: info.GoVersion}}, info.Deps...)
	for _, module := range modules {
		if module.Replace != nil {
			module = module.Replace
		}
		dependency := goPackage(module.Path, module.Version)
		if module.Sum != "" {
			dependency.Comment = "go.sum " + module.Sum
		}
		document.Packages = append(document.Packages, dependency)
		document.Relationships = append(document.Relationships,
			spdxRelationship{Element: root.ID, Type: "DEPENDS_ON", Related: dependency.ID})
	}
	out, err := json.MarshalIndent(document, "", "  ")
	return append(out, '\n'), err
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func goPackage(path, version string) spdxPackage {
	const unknown = "NOASSERTION"
	return spdxPackage{
		ID:   "SPDXRef-" + notInID.ReplaceAllString(path+"-"+version, "-"),
		Name: path, Version: version,
		Supplier: unknown, Download: unknown, Concluded: unknown, Declared: unknown, Copyright: unknown,
		Refs: []spdxRef{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: "pkg:golang/" + path + "@" + version}},
	}
}
