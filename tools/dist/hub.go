package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// hubPrefix begins the names of annotations for Artifact Hub.
const hubPrefix = "artifacthub.io/"

// hubCRD is how Artifact Hub has a version of a CRD.
type hubCRD struct {
	Kind        string `json:"kind"`
	Version     string `json:"version"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
}

// hubAnnotations are those of a chart for Artifact Hub (https://artifacthub.io/docs/topics/annotations/helm/). There is
// none with a key: charts are signed with cosign, which it finds out by itself, and not with PGP.
func (r *release) hubAnnotations(operator string, t *texts, chart files) (map[string]string, error) {
	var crds []hubCRD
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(chart)) {
		if is, err := path.Match("files/*/crd/*_*.yaml", name); err != nil || !is {
			continue
		}
		content, err := yaml.YAMLToJSON(chart[name].content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, object)
		var spec v1alpha1.ClusterServiceVersionSpec
		if err := addObjects(&spec, []*unstructured.Unstructured{object}, t); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, crd := range spec.CustomResourceDefinitions.Owned {
			crds = append(crds, hubCRD{crd.Kind, crd.Version, crd.Name, crd.DisplayName, crd.Description})
		}
	}
	operators := []string{operator}
	if operator == all {
		var err error
		if operators, err = r.operators(); err != nil {
			return nil, err
		}
	}
	examples, words := []json.RawMessage{}, []string{}
	for _, operator := range operators {
		of, err := r.leastExamples(operator, objects)
		if err != nil {
			return nil, err
		}
		about, err := r.texts(operator)
		if err != nil {
			return nil, err
		}
		examples, words = append(examples, of...), append(words, about.DisplayName)
	}
	changelog, err := os.ReadFile(filepath.Join(r.repo, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{
		hubPrefix + "license":              "Apache-2.0",
		hubPrefix + "operator":             "true",
		hubPrefix + "operatorCapabilities": t.Capabilities,
	}
	for name, list := range map[string]any{"crds": crds, "crdsExamples": examples, "changes": changesFor(string(changelog), r.version, words)} {
		text, err := yaml.Marshal(list)
		if err != nil {
			return nil, err
		}
		annotations[hubPrefix+name] = string(text)
	}
	return annotations, nil
}

// leastExamples are the samples of an operator, of each kind the one that sets least.
func (r *release) leastExamples(operator string, objects []*unstructured.Unstructured) ([]json.RawMessage, error) {
	text, err := r.examples(operator, objects)
	if err != nil {
		return nil, err
	}
	var samples, least []json.RawMessage
	if err := json.Unmarshal([]byte(text), &samples); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, sample := range samples {
		var of struct{ APIVersion, Kind string }
		if err := json.Unmarshal(sample, &of); err != nil {
			return nil, err
		}
		if id := of.APIVersion + "/" + of.Kind; !seen[id] {
			seen[id], least = true, append(least, sample)
		}
	}
	return least, nil
}

var (
	paragraph = regexp.MustCompile(`(?m)^(\*\*|- )`)
	mdLink    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// changesFor are the changes of a version that the changelog has for all operators, or for those of the display names.
func changesFor(changelog, version string, names []string) []string {
	changes := []string{}
	section, err := sectionOf(changelog, version)
	if err != nil {
		return changes // it is no release's
	}
	isOurs := true
	starts := paragraph.FindAllStringIndex(section, -1)
	for i, start := range starts {
		end := len(section)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		text := strings.Join(strings.Fields(mdLink.ReplaceAllString(section[start[0]:end], "$1")), " ")
		title, isTitle := strings.CutPrefix(text, "**")
		if !isTitle {
			if isOurs {
				changes = append(changes, strings.TrimPrefix(text, "- "))
			}
			continue
		}
		title, _, _ = strings.Cut(title, "**")
		isOurs = slices.Contains([]string{"Before you upgrade", "All kinds", "Installing, and what you install"}, title) ||
			slices.ContainsFunc(strings.Fields(title), func(word string) bool {
				return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, word) })
			})
	}
	return changes
}

// hubRepository is artifacthub-repo.yml, by which whoever publishes the charts shows Artifact Hub that they own them.
func (t *texts) hubRepository() ([]byte, error) {
	owners := []map[string]string{}
	for _, m := range t.Maintainers {
		owners = append(owners, map[string]string{"name": m.Name, "email": m.Email})
	}
	text, err := yaml.Marshal(map[string]any{"owners": owners})
	return append([]byte("# Goes beside the index.yaml of a chart repository, or into a registry with the tag artifacthub.io. Add the repositoryID that\n"+
		"# Artifact Hub shows, and it calls you a verified publisher: https://artifacthub.io/docs/topics/repositories/helm-charts/\n"), text...), err
}
