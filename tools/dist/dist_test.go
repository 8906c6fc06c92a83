package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// The same source gives the same bytes.
func TestReproducible(t *testing.T) {
	again := t.TempDir()
	if err := makeAll(current, again); err != nil {
		t.Fatal(err)
	}
	made, err := readFiles(again)
	if err != nil {
		t.Fatal(err)
	}
	for name, second := range made {
		first, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second.content) {
			t.Errorf("%s differs when it is made again", name)
		}
	}
}

// Archives end as tar wants them to: with two empty blocks.
func TestArchivesEnd(t *testing.T) {
	archive, err := files{"a/b": {mode: 0o644, content: []byte("c")}}.tar()
	if err != nil || len(archive) != 5*512 || !bytes.HasSuffix(archive, make([]byte, 1024)) {
		t.Errorf("%d bytes, %v", len(archive), err)
	}
}

// Every operator is in what installs all of them.
func TestAllIsAll(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(out, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range glob(t, "bundles/*/v"+current+"/manifests/*_*.yaml") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(content, []byte("kind: CustomResourceDefinition")) {
			continue
		}
		group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
		if !bytes.Contains(whole, []byte("\n  name: "+plural+"."+group+"\n")) {
			t.Errorf("install.yaml lacks %s.%s: add the operator to operators/config/default", plural, group)
		}
	}
	released, err := readReleases(filepath.Join(repo, "hack", "releases"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(released); i++ {
		if semver.MustParse(released[i-1].version).GE(semver.MustParse(released[i].version)) {
			t.Errorf("hack/releases: %s comes before %s", released[i-1].version, released[i].version)
		}
	}
}

// A namespaced install asks for nothing beyond its namespace.
func TestNamespacedInstallHasNoClusterRights(t *testing.T) {
	for _, file := range glob(t, "install-namespaced*.yaml") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"} {
			if bytes.Contains(content, []byte("\nkind: "+kind+"\n")) {
				t.Errorf("%s has a %s", file, kind)
			}
		}
		if bytes.Contains(content, []byte("kind: ClusterRole")) || !bytes.Contains(content, []byte("fieldPath: metadata.namespace")) {
			t.Errorf("%s gives rights on the whole cluster, or watches all namespaces", file)
		}
	}
}

// Without a registry of one's own nothing is published.
func TestPublishable(t *testing.T) {
	for reference, ok := range map[string]bool{
		"fairlead:v0.0.2": false, "you/fairlead:v0.0.2": false, "fairlead-at-operator-bundle:v0.0.2": false,
		"registry.example.com/you/fairlead:v0.0.2": true, "localhost:5000/fairlead:v0.0.2": true, "localhost/fairlead": true,
	} {
		if err := publishable(reference); (err == nil) != ok {
			t.Errorf("%s: %v", reference, err)
		} else if err != nil && !strings.Contains(err.Error(), "IMAGE_TAG_BASE") {
			t.Errorf("%s: the message does not say what to do: %v", reference, err)
		}
	}
}

// What is pushed has the digest that was built, for every platform.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	own := strings.TrimPrefix(server.URL, "http://") + "/you/fairlead"
	o := options{repo: repo, out: t.TempDir(), version: current, base: own, operator: all}
	r, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	_, index := imageFor(t, "amd64", "arm64")
	if err := r.writeArchive(r.imageArchive(), r.image, index); err != nil {
		t.Fatal(err)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.push("fairlead-v" + current + ".tar"); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(own + ":v" + current)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := pushed.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, image := range manifest.Manifests {
		platforms = append(platforms, image.Platform.String())
	}
	if got, err := pushed.Digest(); err != nil || got != want || !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("pushed %v for %v, %v; built %v", got, platforms, err, want)
	}

	if err := (options{out: out, version: current}).push("nothing-*.tar"); err == nil {
		t.Error("pushing what was not built succeeds")
	}
}

func TestChangelogSection(t *testing.T) {
	const text = "# What changes\n\n## 2.0.0\n- two\n\n## 1.0.0\n- one\n"
	if got, err := sectionOf(text, "1.0.0"); err != nil || got != "# 1.0.0\n- one\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := sectionOf(text, "2.0.0"); err != nil || got != "# 2.0.0\n- two\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := sectionOf(text, "3.0.0"); err == nil {
		t.Error("a version without a section is released")
	}
}

// The changelog calls no version released that is not, nor the other way round. Of the newest it says nothing: it is on its way.
func TestChangelogKnowsReleases(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repo, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	released, err := readReleases(filepath.Join(repo, "hack", "releases"))
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "\n## ")
	for _, section := range sections[2:] {
		version, about, _ := strings.Cut(section, "\n")
		isReleased := slices.ContainsFunc(released, func(p past) bool { return p.version == version })
		if isReleased == strings.HasPrefix(about, "Not released") {
			t.Errorf("CHANGELOG.md and hack/releases do not agree on whether %s was released", version)
		}
	}
}
