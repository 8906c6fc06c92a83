package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	dockerarchive "go.podman.io/image/v5/docker/archive"
	ociarchive "go.podman.io/image/v5/oci/archive"
	"go.podman.io/image/v5/types"
)

// An archive of one platform is both an OCI layout and one of `docker save`:
// every tool takes one of them, and finds the same image.
func TestArchiveIsForEveryTool(t *testing.T) {
	r := &release{options: options{out: t.TempDir(), image: "fairlead:dev"}}
	image, index := imageFor(t, runtime.GOARCH)
	if err := r.writeArchive(localArchive, r.image, index); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(r.out, localArchive)

	// As Docker before version 25 reads it.
	tag, err := name.NewTag(r.image)
	if err != nil {
		t.Fatal(err)
	}
	byDocker, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	sameImage(t, "by manifest.json", byDocker, image)

	// As containerd reads it.
	top, err := layout.ImageIndexFromPath(unpacked(t, archive))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("index.json has %v, %v", manifest, err)
	}
	if called := manifest.Manifests[0].Annotations["io.containerd.image.name"]; called != "docker.io/library/fairlead:dev" {
		t.Errorf("containerd calls it %q", called)
	}
	inside, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	byLayout, err := inside.Image(digest)
	if err != nil {
		t.Fatal(err)
	}
	sameImage(t, "by the layout", byLayout, image)

	// As Podman and CRI-O read it, in both formats.
	asDocker, err := dockerarchive.NewReference(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	asOCI, err := ociarchive.NewReference(archive, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range []types.ImageReference{asDocker, asOCI} {
		found, err := reference.NewImage(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		config, err := found.OCIConfig(t.Context())
		if err != nil || config.Config.User != nonRoot || config.Architecture != runtime.GOARCH {
			t.Errorf("%s: %+v, %v", reference.Transport().Name(), config, err)
		}
		if err := found.Close(); err != nil {
			t.Error(err)
		}
	}
}

// manifest.json would say of several platforms that they are one.
func TestArchiveOfSeveralPlatforms(t *testing.T) {
	r := &release{options: options{out: t.TempDir(), image: "fairlead:dev"}}
	_, index := imageFor(t, "amd64", "arm64")
	if err := r.writeArchive(localArchive, r.image, index); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(unpacked(t, filepath.Join(r.out, localArchive)), "manifest.json")); !os.IsNotExist(err) {
		t.Errorf("there is a manifest.json: %v", err)
	}
}

// imageFor is an index of images, and the last of them.
func imageFor(t *testing.T, architectures ...string) (v1.Image, v1.ImageIndex) {
	t.Helper()
	var image v1.Image
	index := v1.ImageIndex(empty.Index)
	for _, architecture := range architectures {
		var err error
		image, err = imageOf(files{programs[0]: {mode: 0o755, content: []byte(architecture)}},
			v1.ConfigFile{OS: "linux", Architecture: architecture, Config: v1.Config{User: nonRoot}})
		if err != nil {
			t.Fatal(err)
		}
		platform := &v1.Platform{OS: "linux", Architecture: architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return image, index
}

// sameImage holds an image's config and layers against those of another.
func sameImage(t *testing.T, how string, got, want v1.Image) {
	t.Helper()
	if err := validate.Image(got); err != nil {
		t.Errorf("%s: %v", how, err)
	}
	config, err := got.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if wanted, err := want.ConfigName(); err != nil || config != wanted {
		t.Errorf("%s the config is %s, %v; want %s", how, config, err, wanted)
	}
}

func unpacked(t *testing.T, archive string) string {
	t.Helper()
	in, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	folder := t.TempDir()
	if err := untar(in, folder); err != nil {
		t.Fatal(err)
	}
	return folder
}
