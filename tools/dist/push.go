package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// sbomType is the type of an SBOM, as a file and as an artifact in a registry.
const sbomType = types.MediaType("application/spdx+json")

// push publishes the archives of that name, with the credentials that docker
// login or podman login left.
func (o options) push(pattern string) error {
	return o.eachImage(pattern, func(tag name.Tag, content v1.ImageIndex, descriptor v1.Descriptor) error {
		if err := o.pushOne(tag, content, descriptor); err != nil {
			return err
		}
		fmt.Printf("pushed %s@%s\n", tag, descriptor.Digest)
		return nil
	})
}

// eachImage calls do for each image in the archives of that name, and the tag that it is published under.
func (o options) eachImage(pattern string, do func(name.Tag, v1.ImageIndex, v1.Descriptor) error) error {
	archives, err := filepath.Glob(filepath.Join(o.out, imagesFolder, pattern))
	if err != nil {
		return err
	}
	if len(archives) == 0 {
		return fmt.Errorf("there is no %s in %s: build it first", pattern, filepath.Join(o.out, imagesFolder))
	}
	for _, archive := range archives {
		if err := o.eachImageOf(archive, do); err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
	}
	return nil
}

func (o options) eachImageOf(archive string, do func(name.Tag, v1.ImageIndex, v1.Descriptor) error) error {
	folder, err := os.MkdirTemp("", "fairlead-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if err := untar(in, folder); err != nil {
		return err
	}
	content, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return err
	}
	manifest, err := content.IndexManifest()
	if err != nil {
		return err
	}
	for _, descriptor := range manifest.Manifests {
		reference := descriptor.Annotations[referenceAnnotation]
		if descriptor.MediaType.IsIndex() && o.image != "" { // the manager's, under the name that is asked for now
			reference = o.image
		}
		if err := publishable(reference); err != nil {
			return err
		}
		tag, err := name.NewTag(reference)
		if err != nil {
			return err
		}
		if err := do(tag, content, descriptor); err != nil {
			return err
		}
	}
	return nil
}

// publishable refuses names that are not the user's own: without a registry
// they would mean somebody else's place on a public one.
func publishable(reference string) error {
	host, _, ok := strings.Cut(reference, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return fmt.Errorf("image %q names no registry: publishing takes an IMAGE_TAG_BASE (or IMG) of your own, "+
			"such as registry.example.com/you/fairlead", reference)
	}
	return nil
}

func (o options) pushOne(tag name.Tag, content v1.ImageIndex, descriptor v1.Descriptor) error {
	auth := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if descriptor.MediaType.IsImage() {
		image, err := content.Image(descriptor.Digest)
		if err != nil {
			return err
		}
		return remote.Write(tag, image, auth)
	}
	index, err := content.ImageIndex(descriptor.Digest)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(tag, index, auth); err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, image := range manifest.Manifests {
		if err := o.pushSBOM(tag.Context(), image, auth); err != nil {
			return err
		}
	}
	return nil
}

// pushSBOM attaches the SBOM of one platform's image to it: registries list it
// among the image's referrers.
func (o options) pushSBOM(to name.Repository, image v1.Descriptor, auth remote.Option) error {
	bill, err := os.ReadFile(filepath.Join(o.out, sbomFile(o.version, image.Platform)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	artifact, err := mutate.AppendLayers(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), sbomType),
		static.NewLayer(bill, sbomType))
	if err != nil {
		return err
	}
	image.Platform, image.Annotations = nil, nil
	artifact, ok := mutate.Subject(artifact, image).(v1.Image)
	if !ok {
		return errors.New("the SBOM's manifest is no image")
	}
	digest, err := artifact.Digest()
	if err != nil {
		return err
	}
	return remote.Write(to.Digest(digest.String()), artifact, auth)
}
