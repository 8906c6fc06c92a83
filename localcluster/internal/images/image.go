// Package images makes container images on the spot, without a registry and
// without a container engine: one layer of files from the host, from Debian's
// packages or from the Go build, and a config. They go by the usual names of
// what they stand in for, with the version that is really inside, carry labels
// that say so, and are never pushed anywhere.
package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is an image that can be written to an archive.
type Image struct {
	// Names are what pods call it by.
	Names  []string
	Config v1.Config
	Files  Files
}

// File is an entry of a layer: a folder if Mode says so, a symbolic link if
// Target is set, else a file with the content of the host's file Source or of
// Data.
type File struct {
	Mode           os.FileMode
	Target, Source string
	Data           []byte
}

// Files are a layer's entries by their path in the image, without the leading
// slash. Parent folders need not be listed.
type Files map[string]File

// layer is the entries as a tar file. The same files give the same bytes: they
// are sorted, belong to root, and have no time.
func (f Files) layer() ([]byte, error) {
	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	for _, name := range f.withParents() {
		file := f[name]
		header := &tar.Header{Name: name, Mode: int64(file.Mode.Perm()), ModTime: time.Unix(0, 0)}
		if file.Mode&os.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		var content io.Reader = bytes.NewReader(file.Data)
		switch {
		case file.Target != "":
			header.Typeflag, header.Linkname = tar.TypeSymlink, file.Target
		case file.Mode.IsDir():
			header.Typeflag, header.Name = tar.TypeDir, name+"/"
		case file.Source != "":
			source, err := os.Open(file.Source)
			if err != nil {
				return nil, err
			}
			defer source.Close()
			info, err := source.Stat()
			if err != nil {
				return nil, err
			}
			header.Size, content = info.Size(), source
		default:
			header.Size = int64(len(file.Data))
		}
		if err := out.WriteHeader(header); err != nil {
			return nil, err
		}
		if header.Size > 0 {
			if _, err := io.Copy(out, content); err != nil {
				return nil, fmt.Errorf("add %s: %w", name, err)
			}
		}
	}
	err := out.Close() // writes the archive's end
	return archive.Bytes(), err
}

// withParents adds the folders that are only implied, and sorts: a folder
// comes before what is in it.
func (f Files) withParents() []string {
	var names []string
	for name := range f {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := f[dir]; !ok {
				f[dir] = File{Mode: os.ModeDir | 0o755}
			}
		}
	}
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Archive is an image in the OCI image layout as a tar file.
type Archive struct {
	Names  []string
	Digest v1.Hash
	Data   []byte
}

// Archive assembles the image. Layers stay uncompressed, as nobody carries
// them over a network.
func (i Image) Archive() (*Archive, error) {
	layer, err := i.Files.layer()
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Names[0], err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(base, static.NewLayer(layer, types.OCIUncompressedLayer))
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config = "linux", runtime.GOARCH, i.Config
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return ociArchive(image, i.Names)
}

// ociArchive writes the image layout with one index entry per name, the way
// that containerd reads names: from an annotation of its own.
func ociArchive(image v1.Image, names []string) (*Archive, error) {
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	configDigest, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	archive := &Archive{Digest: digest}
	for _, short := range names {
		full, err := FullName(short)
		if err != nil {
			return nil, err
		}
		archive.Names = append(archive.Names, full)
		index.Manifests = append(index.Manifests, v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Size: int64(len(manifest)), Digest: digest,
			Annotations: map[string]string{"io.containerd.image.name": full},
		})
	}
	indexJSON, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	files := Files{
		"oci-layout":       {Mode: 0o644, Data: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		"index.json":       {Mode: 0o644, Data: indexJSON},
		blob(digest):       {Mode: 0o644, Data: manifest},
		blob(configDigest): {Mode: 0o644, Data: config},
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		if err := addBlob(files, layer); err != nil {
			return nil, err
		}
	}
	archive.Data, err = files.layer()
	return archive, err
}

func addBlob(files Files, layer v1.Layer) error {
	digest, err := layer.Digest()
	if err != nil {
		return err
	}
	content, err := layer.Compressed() // as stored, that is: these are not compressed
	if err != nil {
		return err
	}
	data, err := io.ReadAll(content)
	files[blob(digest)] = File{Mode: 0o644, Data: data}
	return err
}

func blob(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }

// FullName is what containerd calls an image: with the default registry,
// folder and tag that people leave out.
func FullName(short string) (string, error) {
	ref, err := name.ParseReference(short)
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(ref.Name(), "index."), nil // it knows the default registry by its older name
}
