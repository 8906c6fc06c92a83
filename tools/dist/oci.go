package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// files are a layer's or an archive's, by their paths without leading slash.
type files map[string]file

type file struct {
	mode    int64
	content []byte
}

// tar is the files and their folders as a tar file: sorted, root's, and
// without a time, so that the same files give the same bytes.
func (f files) tar() ([]byte, error) {
	names := map[string]bool{}
	for name := range f {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			names[dir+"/"] = true
		}
		names[name] = true
	}
	var sorted []string
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)

	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	for _, name := range sorted {
		header := &tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755, ModTime: time.Unix(0, 0)}
		if content, ok := f[name]; ok {
			header.Typeflag, header.Mode, header.Size = tar.TypeReg, content.mode, int64(len(content.content))
		}
		if err := out.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := out.Write(f[name].content); err != nil {
			return nil, err
		}
	}
	err := out.Close() // writes the archive's end
	return archive.Bytes(), err
}

// tgz is the tar file compressed.
func (f files) tgz() ([]byte, error) {
	archive, err := f.tar()
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(archive); err != nil {
		return nil, err
	}
	err = zip.Close() // writes what is left
	return packed.Bytes(), err
}

// readFiles reads a folder with all that is below it, also by links.
func readFiles(folder string) (files, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	all := files{}
	for _, entry := range entries {
		name := filepath.Join(folder, entry.Name())
		about, err := os.Stat(name) // of what a link is to
		if err != nil {
			return nil, err
		}
		if about.IsDir() {
			below, err := readFiles(name)
			if err != nil {
				return nil, err
			}
			for name, file := range below {
				all[entry.Name()+"/"+name] = file
			}
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all[entry.Name()] = file{mode: 0o644, content: content}
	}
	return all, nil
}

// imageOf is an image of one layer.
func imageOf(content files, config v1.ConfigFile) (v1.Image, error) {
	archive, err := content.tar()
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, err
	}
	made, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.RootFS = made.RootFS
	config.History = []v1.History{{Created: config.Created, CreatedBy: "dist"}}
	return mutate.ConfigFile(image, &config)
}

// writeArchive writes an image, or an index of images, as an OCI image layout
// in a tar file, under the name that containerd and `podman load` will call it.
// If the index is of one platform, the archive is one of `docker save` as well.
func (r *release) writeArchive(archive, reference string, image mutate.Appendable) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("image name %q: %w", reference, err)
	}
	folder, err := os.MkdirTemp("", "fairlead-layout-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	target, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	fullName := strings.Replace(tag.Name(), name.DefaultRegistry, "docker.io", 1)
	annotations := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": fullName,
		referenceAnnotation:        reference,
		revisionKey:                r.commit,
	})
	switch image := image.(type) {
	case v1.ImageIndex:
		err = target.AppendIndex(image, annotations)
	case v1.Image:
		err = target.AppendImage(image, annotations)
	}
	if err != nil {
		return err
	}
	content, err := readFiles(folder)
	if err != nil {
		return err
	}
	if index, ok := image.(v1.ImageIndex); ok {
		if err := addDockerManifest(content, fullName, index); err != nil {
			return err
		}
	}
	out, err := content.tar()
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s in %s\n", reference, digest, filepath.Join(r.out, filepath.FromSlash(archive)))
	return r.write(archive, out)
}

// addDockerManifest adds the file that `docker load` goes by: before version 25
// Docker does not know OCI's layout. It cannot be about several platforms.
func addDockerManifest(layout files, fullName string, index v1.ImageIndex) error {
	images, err := partial.FindImages(index, func(v1.Descriptor) bool { return true })
	if err != nil || len(images) != 1 {
		return err
	}
	manifest, err := images[0].Manifest()
	if err != nil {
		return err
	}
	blob := func(about v1.Descriptor) string { return path.Join("blobs", about.Digest.Algorithm, about.Digest.Hex) }
	image := tarball.Descriptor{Config: blob(manifest.Config), RepoTags: []string{fullName}}
	for _, layer := range manifest.Layers {
		image.Layers = append(image.Layers, blob(layer))
	}
	content, err := json.Marshal(tarball.Manifest{image})
	layout["manifest.json"] = file{mode: 0o644, content: content}
	return err
}

const (
	// imagesFolder is where the archives go, in the output folder.
	imagesFolder = "images"
	// referenceAnnotation has an image's name in an archive.
	referenceAnnotation = "org.opencontainers.image.ref.name"
)
