package images

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// FromArchive is an image from a tar file in the OCI image layout, under
// another name. It may be for several platforms.
func FromArchive(name, file string) (*Archive, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	files := Files{}
	for entries := tar.NewReader(in); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(entries)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		files[header.Name] = File{Mode: 0o644, Data: content}
	}

	var index v1.IndexManifest
	if err := json.Unmarshal(files["index.json"].Data, &index); err != nil {
		return nil, fmt.Errorf("%s is not an OCI image layout: %w", file, err)
	}
	if len(index.Manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images, not one", file, len(index.Manifests))
	}
	full, err := FullName(name)
	if err != nil {
		return nil, err
	}
	index.Manifests[0].Annotations = map[string]string{"io.containerd.image.name": full}
	renamed, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	files["index.json"] = File{Mode: 0o644, Data: renamed}
	data, err := files.layer()
	return &Archive{Names: []string{full}, Digest: index.Manifests[0].Digest, Data: data}, err
}
