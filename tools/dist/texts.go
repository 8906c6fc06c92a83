package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// texts are what people read about an operator before they install it: the
// files olm/package.yaml and olm/icon.svg of its folder.
// operators/config has those of all operators together, which also fill in
// what an operator's leave out.
type texts struct {
	// Package is the name of the OLM package.
	Package string `json:"package"`
	// Chart is the name of the chart, and of what runs; the package's unless given.
	Chart string `json:"chart"`
	// CSV is the name of the ClusterServiceVersions without the version; the
	// package's unless given.
	CSV          string   `json:"csv"`
	DisplayName  string   `json:"displayName"`
	Summary      string   `json:"summary"`     // one line
	Description  string   `json:"description"` // Markdown
	Keywords     []string `json:"keywords"`
	Categories   string   `json:"categories"`
	Capabilities string   `json:"capabilities"`
	Channels     []string `json:"channels"` // the first one is the default
	// Resources are, by CRD, the kinds that an object of it leads to.
	Resources map[string][]v1alpha1.APIResourceReference `json:"resources"`
	// RelatedImages are those that the operator runs by default, beside its own.
	RelatedImages []v1alpha1.RelatedImage `json:"relatedImages"`

	Provider       v1alpha1.AppLink      `json:"provider"`
	Maintainers    []v1alpha1.Maintainer `json:"maintainers"`
	Links          []v1alpha1.AppLink    `json:"links"`
	Maturity       string                `json:"maturity"`
	MinKubeVersion string                `json:"minKubeVersion"`
	Repository     string                `json:"repository"`
	// Features are OpenShift's, features.operators.openshift.io/<name>.
	Features map[string]bool `json:"features"`

	icon []byte
}

// texts reads an operator's texts. A commit that has none, because it is older
// than they are, gets today's.
func (r *release) texts(operator string) (*texts, error) {
	t := &texts{}
	read := func(name string) ([]byte, error) {
		content, err := os.ReadFile(filepath.Join(r.tree, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			content, err = os.ReadFile(filepath.Join(r.repo, filepath.FromSlash(name)))
		}
		return content, err
	}
	folder := "operators/config"
	folders := []string{folder}
	if operator != all {
		folder = "operators/" + operator
		folders = append(folders, folder)
	}
	for _, folder := range folders {
		content, err := read(path.Join(folder, "olm", "package.yaml"))
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(content, t); err != nil {
			return nil, fmt.Errorf("%s/olm/package.yaml: %w", folder, err)
		}
	}
	var err error
	if t.icon, err = read(path.Join(folder, "olm", "icon.svg")); err != nil {
		return nil, err
	}
	if t.CSV == "" {
		t.CSV = t.Package
	}
	if t.Chart == "" {
		t.Chart = t.Package
	}
	return t, nil
}

func (t *texts) iconBase64() string { return base64.StdEncoding.EncodeToString(t.icon) }

func (t *texts) iconURL() string { return "data:image/svg+xml;base64," + t.iconBase64() }
