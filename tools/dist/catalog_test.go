package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/model"
	"sigs.k8s.io/yaml"
)

// The rules of a file-based catalog: operator-registry's model holds those that
// `opm validate` does, the rest is here.
func TestCatalog(t *testing.T) {
	catalog, err := declcfg.LoadFS(t.Context(), os.DirFS(filepath.Join(out, "catalog")))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := declcfg.ConvertToModel(*catalog)
	if err != nil {
		t.Fatal(err)
	}
	if err := packages.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(packages) == 0 || len(catalog.Others) > 0 {
		t.Fatalf("%d packages, unknown blobs: %v", len(packages), catalog.Others)
	}
	for name, pkg := range packages {
		if pkg.Description == "" || pkg.Icon == nil || len(pkg.Icon.Data) == 0 || pkg.DefaultChannel == nil {
			t.Errorf("%s: description, icon and default channel are to be there", name)
		}
		images := map[string]string{}
		for _, channel := range pkg.Channels {
			head, err := channel.Head()
			if err != nil {
				t.Fatal(err)
			}
			if head.Version.String() != current {
				t.Errorf("%s, channel %s: the head is %s, want %s", name, channel.Name, head.Name, current)
			}
			for _, bundle := range channel.Bundles {
				if other, ok := images[bundle.Image]; bundle.Image == "" || ok && other != bundle.Name {
					t.Errorf("%s and %s have the image %q", bundle.Name, other, bundle.Image)
				}
				images[bundle.Image] = bundle.Name
				sameEdgesAsItsCSV(t, name, bundle)
			}
		}
	}
	for _, bundle := range catalog.Bundles {
		types := map[string]int{}
		for _, property := range bundle.Properties {
			types[property.Type]++
		}
		// opm does not ask for olm.csv.metadata, but consoles do.
		if types["olm.package"] != 1 || types["olm.csv.metadata"] != 1 || types["olm.gvk"] == 0 {
			t.Errorf("%s: properties %v", bundle.Name, types)
		}
		for _, rejected := range []string{"olm.gvk.required", "olm.package.required", "olm.constraint"} {
			if types[rejected] > 0 {
				t.Errorf("%s: OLM v1 rejects %s", bundle.Name, rejected)
			}
		}
	}
}

// sameEdgesAsItsCSV holds the catalog's edges against the bundle's: the
// catalog's win, so that a difference would only confuse.
func sameEdgesAsItsCSV(t *testing.T, pkg string, inCatalog *model.Bundle) {
	t.Helper()
	b, err := manifests.GetBundleFromDir(filepath.Join(out, "bundles", pkg, "v"+inCatalog.Version.String()))
	if err != nil {
		t.Fatal(err)
	}
	if b.CSV.Spec.Replaces != inCatalog.Replaces || b.CSV.Annotations["olm.skipRange"] != inCatalog.SkipRange {
		t.Errorf("%s: replaces %q and skips %q in the catalog, %q and %q in the CSV", b.CSV.Name, inCatalog.Replaces,
			inCatalog.SkipRange, b.CSV.Spec.Replaces, b.CSV.Annotations["olm.skipRange"])
	}
}

// An operator of the last released version can be upgraded to this one, and
// the two have different images.
func TestUpgradeEdges(t *testing.T) {
	released, err := readReleases(filepath.Join(repo, "hack", "releases"))
	if err != nil || len(released) == 0 {
		t.Fatalf("hack/releases: %v, %v", released, err)
	}
	last := released[len(released)-1].version
	edges := 0
	for _, dir := range glob(t, "bundles/*/v"+current) {
		newer, err := manifests.GetBundleFromDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		older, err := manifests.GetBundleFromDir(filepath.Join(filepath.Dir(dir), "v"+last))
		if err != nil {
			continue // the operator is new in this version
		}
		edges++
		if newer.CSV.Spec.Replaces != older.CSV.Name || newer.CSV.Annotations["containerImage"] == older.CSV.Annotations["containerImage"] ||
			!strings.HasSuffix(newer.CSV.Annotations["olm.skipRange"], " <"+current) {
			t.Errorf("%s replaces %q, want %s; image %s", newer.CSV.Name, newer.CSV.Spec.Replaces, older.CSV.Name, newer.CSV.Annotations["containerImage"])
		}
	}
	if edges == 0 {
		t.Error("no operator can be upgraded")
	}
}

func TestCatalogImage(t *testing.T) {
	labels, _ := contentImage(t, "catalog-v"+current+".tar")
	if labels["operators.operatorframework.io.index.configs.v1"] != "/configs" {
		t.Errorf("labels %v", labels)
	}
}

// The manifests that install from the catalog are filled in.
func TestOLMInstallManifests(t *testing.T) {
	kinds := map[string]bool{}
	for _, file := range glob(t, "olm/*/*.yaml") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var object struct {
				Kind string `json:"kind"`
			}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil || object.Kind == "" {
				t.Errorf("%s: %v\n%s", file, err, document)
			}
			kinds[object.Kind] = true
		}
		// OLM v0 and new versions of v1 need no account that may do everything, and a
		// cache that the image does not have keeps the catalog's pod from starting.
		if name := filepath.Base(file); name != "v1-service-account.yaml" && strings.Contains(string(content), "cluster-admin") ||
			strings.Contains(string(content), "cacheDir") {
			t.Errorf("%s makes a cluster-admin, or names a cache:\n%s", file, content)
		}
		for _, mark := range []string{"PACKAGE", "OPERATOR", "CHANNEL", "NAMESPACE", "CATALOG_IMAGE"} {
			if slices.Contains(strings.Fields(string(content)), mark) {
				t.Errorf("%s: %s is not filled in", file, mark)
			}
		}
	}
	for _, kind := range []string{"CatalogSource", "OperatorGroup", "Subscription", "ClusterCatalog", "ClusterExtension"} {
		if !kinds[kind] {
			t.Errorf("no %s", kind)
		}
	}
}
