package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push publishes the archives of that name, with the credentials that docker
// login or podman login left.
func (o options) push(pattern string) error {
	return o.eachImage(pattern, func(tag name.Tag, image remote.Taggable, digest v1.Hash) error {
		if err := remote.Push(tag, image, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return err
		}
		fmt.Printf("pushed %s@%s\n", tag, digest)
		return nil
	})
}

// eachImage calls do for each image in the archives of that name, and the tag that it is published under.
func (o options) eachImage(pattern string, do func(name.Tag, remote.Taggable, v1.Hash) error) error {
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

func (o options) eachImageOf(archive string, do func(name.Tag, remote.Taggable, v1.Hash) error) error {
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
		var image remote.Taggable
		if descriptor.MediaType.IsIndex() {
			image, err = content.ImageIndex(descriptor.Digest)
		} else {
			image, err = content.Image(descriptor.Digest)
		}
		if err != nil {
			return err
		}
		if err := do(tag, image, descriptor.Digest); err != nil {
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
