package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/property"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// writeCatalog writes the file-based catalog with every version so far, its
// image, and per package what installs from it.
func (r *release) writeCatalog() error {
	catalog, err := r.catalog()
	if err != nil {
		return err
	}
	content := files{}
	for name, text := range catalog {
		if err := r.write("catalog/"+name, text); err != nil {
			return err
		}
		content["configs/"+name] = file{mode: 0o644, content: text}
	}
	labels := r.imageLabels("Fairlead catalog", "Fairlead's operators for the Operator Lifecycle Manager")
	labels["operators.operatorframework.io.index.configs.v1"] = "/configs"
	if err := r.writeContentImage("catalog-v"+r.version+".tar", r.catalogImage(), content, labels); err != nil {
		return err
	}
	dockerfile := "FROM scratch\nLABEL operators.operatorframework.io.index.configs.v1=/configs\nCOPY catalog /configs\n"
	if err := r.write("catalog.Dockerfile", []byte(dockerfile)); err != nil {
		return err
	}
	return r.writeOLMInstalls()
}

func (r *release) catalogImage() string { return r.base + "-catalog:v" + r.version }

// catalog is a file per package: its versions, oldest first, each replacing
// the one before.
func (r *release) catalog() (map[string][]byte, error) {
	bundles := map[string][]*bundle{}
	for _, p := range r.past {
		older, err := r.ofVersion(p.version)
		if err != nil {
			return nil, err
		}
		err = older.addBundles(bundles)
		older.close()
		if err != nil {
			return nil, err
		}
	}
	if err := r.addBundles(bundles); err != nil {
		return nil, err
	}
	catalog := map[string][]byte{}
	for name, versions := range bundles {
		var blobs []any
		newest := versions[len(versions)-1]
		blobs = append(blobs, map[string]any{
			"schema": "olm.package", "name": name, "defaultChannel": newest.Channels[0], "description": newest.Summary,
			"icon": map[string]any{"base64data": newest.iconBase64(), "mediatype": "image/svg+xml"},
		})
		for _, channel := range newest.Channels {
			blobs = append(blobs, channelOf(name, channel, versions))
		}
		for _, b := range versions {
			blobs = append(blobs, b.blob())
		}
		var text bytes.Buffer
		for _, blob := range blobs {
			out, err := yaml.Marshal(blob)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&text, "---\n%s", out)
		}
		catalog[name+"/catalog.yaml"] = text.Bytes()
	}
	return catalog, nil
}

func (r *release) addBundles(to map[string][]*bundle) error {
	operators, err := r.operators()
	if err != nil {
		return err
	}
	for _, operator := range operators {
		made, err := r.bundle(operator)
		if err != nil {
			return fmt.Errorf("version %s: bundle of %s: %w", r.version, operator, err)
		}
		to[made.Package] = append(to[made.Package], made)
	}
	return nil
}

// channelOf is the upgrade graph: a line from the first version to the newest.
func channelOf(name, channel string, versions []*bundle) map[string]any {
	var entries []any
	previous := ""
	for _, b := range versions {
		entry := map[string]any{"name": csvName(b.texts, b.version)}
		if previous != "" {
			entry["replaces"] = previous
			entry["skipRange"] = b.skipRange
		}
		previous = csvName(b.texts, b.version)
		entries = append(entries, entry)
	}
	return map[string]any{"schema": "olm.channel", "package": name, "name": channel, "entries": entries}
}

// blob is the bundle's entry in the catalog. olm.csv.metadata is what consoles
// and `kubectl get packagemanifest` show without pulling the bundle.
func (b *bundle) blob() map[string]any {
	properties := []any{map[string]any{"type": "olm.package",
		"value": map[string]any{"packageName": b.Package, "version": b.version}}}
	for _, crd := range b.crds {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, version := range versions {
			properties = append(properties, map[string]any{"type": "olm.gvk", "value": map[string]any{
				"group": group, "kind": kind, "version": version.(map[string]any)["name"]}})
		}
	}
	properties = append(properties, property.MustBuildCSVMetadata(*b.csv))
	related := append([]v1alpha1.RelatedImage{{Image: b.image}}, b.csv.Spec.RelatedImages...)
	return map[string]any{
		"schema": "olm.bundle", "package": b.Package, "name": csvName(b.texts, b.version),
		"image": b.image, "properties": properties, "relatedImages": related,
	}
}

// writeOLMInstalls fills in the manifests of operators/config/olm/install for
// every package.
func (r *release) writeOLMInstalls() error {
	operators, err := r.chosen()
	if err != nil {
		return err
	}
	manifests, err := filepath.Glob(filepath.Join(r.repo, "operators", "config", "olm", "install", "*.yaml"))
	if err != nil {
		return err
	}
	for _, operator := range operators {
		t, err := r.texts(operator)
		if err != nil {
			return err
		}
		fill := strings.NewReplacer(
			"PACKAGE", t.Package, "OPERATOR", t.Chart, "CHANNEL", t.Channels[0], "CATALOG_IMAGE", r.catalogImage(),
			"NAMESPACE", operator+"-operator-system")
		for _, manifest := range manifests {
			content, err := os.ReadFile(manifest)
			if err != nil {
				return err
			}
			name := path.Join("olm", t.Chart, filepath.Base(manifest))
			if err := r.write(name, []byte(fill.Replace(string(content)))); err != nil {
				return err
			}
		}
	}
	return nil
}
