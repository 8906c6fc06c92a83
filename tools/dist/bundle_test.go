package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The rules of a registry+v1 bundle, those that the Operator Framework's own
// validators hold, and those that no tool checks.

// eachBundle runs a test for every bundle of every version.
func eachBundle(t *testing.T, test func(t *testing.T, dir string, b *manifests.Bundle)) {
	for _, dir := range glob(t, "bundles/*/v*.*.*[0-9]") {
		t.Run(filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir), func(t *testing.T) {
			b, err := manifests.GetBundleFromDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			test(t, dir, b)
		})
	}
}

// MultipleArchitecturesValidator is not among them: it pulls the image.
func TestBundlesPassTheFrameworksValidators(t *testing.T) {
	validators := append(slices.Clone(validation.DefaultBundleValidators),
		validation.ObjectValidator, validation.OperatorHubV2Validator, validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator, validation.AlphaDeprecatedAPIsValidator, validation.GoodPracticesValidator)
	eachBundle(t, func(t *testing.T, _ string, b *manifests.Bundle) {
		objects := []any{b, b.CSV}
		for _, crd := range b.V1CRDs {
			objects = append(objects, crd)
		}
		for _, object := range b.Objects {
			objects = append(objects, object)
		}
		for _, result := range validators.Validate(objects...) {
			for _, problem := range append(result.Errors, result.Warnings...) {
				// The channels are called alpha and singlenamespace-alpha in the guides that people follow.
				if !strings.Contains(problem.Error(), "are not following the recommended naming convention") {
					t.Errorf("%s: %v", result.Name, problem)
				}
			}
		}
	})
}

// supportedKinds are those that OLM takes from a bundle and that we use. It takes ServiceMonitors and PrometheusRules,
// too, but an install fails where these kinds are not there.
var supportedKinds = []string{"ClusterServiceVersion", "CustomResourceDefinition", "Service", "ClusterRole", "Role", "RoleBinding"}

func TestBundleLayout(t *testing.T) {
	eachBundle(t, func(t *testing.T, dir string, b *manifests.Bundle) {
		entries, err := os.ReadDir(filepath.Join(dir, "manifests"))
		if err != nil {
			t.Fatal(err)
		}
		csvs := 0
		for _, entry := range entries {
			if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
				t.Errorf("manifests/%s: only plain files may be there", entry.Name())
			}
			content, err := os.ReadFile(filepath.Join(dir, "manifests", entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(content, &object.Object); err != nil || strings.Contains(string(content), "\n---\n") {
				t.Errorf("%s: not one object: %v", entry.Name(), err)
			}
			if !slices.Contains(supportedKinds, object.GetKind()) {
				t.Errorf("%s: kind %s", entry.Name(), object.GetKind())
			}
			if object.GetKind() == "ClusterServiceVersion" {
				csvs++
			} else if object.GetNamespace() != "" {
				t.Errorf("%s: has a namespace; it goes where the operator is installed", entry.Name())
			}
		}
		if csvs != 1 {
			t.Errorf("%d ClusterServiceVersions", csvs)
		}
		for _, file := range []string{"metadata/dependencies.yaml", "metadata/properties.yaml"} {
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				t.Errorf("%s: OLM v1 rejects most of what it may hold", file)
			}
		}
		if len(b.CSV.Spec.WebhookDefinitions) > 0 || len(b.CSV.Spec.APIServiceDefinitions.Owned) > 0 || len(b.CSV.Spec.CustomResourceDefinitions.Required) > 0 {
			t.Error("webhooks, APIServices and required CRDs keep it from OLM v1")
		}
		if _, ok := b.CSV.Annotations["olm.properties"]; ok {
			t.Error("properties do not belong into an annotation")
		}
	})
}

func TestBundleAnnotationsAndImage(t *testing.T) {
	eachBundle(t, func(t *testing.T, dir string, _ *manifests.Bundle) {
		content, err := os.ReadFile(filepath.Join(dir, "metadata", "annotations.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var metadata struct {
			Annotations map[string]string `json:"annotations"`
		}
		if err := yaml.UnmarshalStrict(content, &metadata); err != nil {
			t.Fatal(err)
		}
		have, name := metadata.Annotations, filepath.Base(filepath.Dir(dir))
		const prefix = "operators.operatorframework.io."
		for key, want := range map[string]string{
			"bundle.mediatype.v1": "registry+v1", "bundle.manifests.v1": "manifests/", "bundle.metadata.v1": "metadata/",
			"bundle.package.v1": name, "test.mediatype.v1": "scorecard+v1", "test.config.v1": "tests/scorecard/",
		} {
			if have[prefix+key] != want {
				t.Errorf("%s: %q, want %q", key, have[prefix+key], want)
			}
		}
		channels := strings.Split(have[prefix+"bundle.channels.v1"], ",")
		if channels[0] == "" || !slices.Contains(channels, have[prefix+"bundle.channel.default.v1"]) {
			t.Errorf("channels %v, default %q", channels, have[prefix+"bundle.channel.default.v1"])
		}
		if _, err := os.Stat(filepath.Join(dir, "tests", "scorecard", "config.yaml")); err != nil {
			t.Error(err)
		}

		labels, size := contentImage(t, name+"-bundle-"+filepath.Base(dir)+".tar")
		for key, want := range have {
			if labels[key] != want {
				t.Errorf("image label %s: %q, want %q", key, labels[key], want)
			}
		}
		if size > 1<<20*85/100 {
			t.Errorf("the bundle has %d bytes compressed; OLM warns above 85%% of 1 MiB", size)
		}
	})
}

// contentImage is an image's labels and the size of its layer.
func contentImage(t *testing.T, archive string) (map[string]string, int64) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(unpacked(t, filepath.Join(out, imagesFolder, archive)))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	size, err := layers[0].Size()
	if err != nil {
		t.Fatal(err)
	}
	return config.Config.Labels, size
}
