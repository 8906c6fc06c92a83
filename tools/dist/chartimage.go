package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// Media types of a chart in a registry: https://helm.sh/community/hips/hip-0006/.
const (
	chartConfigType  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContentType types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// chartImage is a chart as a registry has it: what Chart.yaml says in place of an image's configuration, and the packed
// chart as its only layer.
type chartImage struct {
	about, manifest []byte
	packed          v1.Layer
}

// writeChartImage writes a packed chart as an archive that is pushed and signed as images are.
func (r *release) writeChartImage(name string, chartYAML, packed []byte) error {
	about, err := yaml.YAMLToJSON(chartYAML)
	if err != nil {
		return err
	}
	c := chartImage{about: about, packed: static.NewLayer(packed, chartContentType)}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	if manifest.Config, err = descriptorOf(chartConfigType, about); err != nil {
		return err
	}
	content, err := descriptorOf(chartContentType, packed)
	if err != nil {
		return err
	}
	manifest.Layers = []v1.Descriptor{content}
	if c.manifest, err = json.Marshal(manifest); err != nil {
		return err
	}
	image, err := partial.CompressedToImage(c)
	if err != nil {
		return err
	}
	return r.writeArchive(path.Join(imagesFolder, fmt.Sprintf("%s-chart-v%s.tar", name, r.version)), path.Join(r.base, "charts", name)+":"+r.version, image)
}

func descriptorOf(kind types.MediaType, content []byte) (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(content))
	return v1.Descriptor{MediaType: kind, Digest: digest, Size: size}, err
}

func (c chartImage) RawConfigFile() ([]byte, error)                         { return c.about, nil }
func (c chartImage) MediaType() (types.MediaType, error)                    { return types.OCIManifestSchema1, nil }
func (c chartImage) RawManifest() ([]byte, error)                           { return c.manifest, nil }
func (c chartImage) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return c.packed, nil }
