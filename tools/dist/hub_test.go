package main

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// What Artifact Hub shows of a chart: each version of each kind with an example, and what has changed.
func TestChartsOfArtifactHub(t *testing.T) {
	released, err := open(options{repo: repo, operator: all, version: "0.1.0", base: base})
	if err != nil {
		t.Fatal(err)
	}
	installs, err := released.installs()
	if err != nil {
		t.Fatal(err)
	}
	for _, operator := range installs {
		content, name, err := released.chart(operator)
		if err != nil {
			t.Fatal(err)
		}
		var chart struct{ Annotations map[string]string }
		if err := yaml.Unmarshal(content[name+"/Chart.yaml"].content, &chart); err != nil {
			t.Fatal(err)
		}
		var crds []hubCRD
		var examples []struct{ APIVersion, Kind string }
		var changes []string
		for annotation, list := range map[string]any{"crds": &crds, "crdsExamples": &examples, "changes": &changes} {
			if err := yaml.Unmarshal([]byte(chart.Annotations[hubPrefix+annotation]), list); err != nil {
				t.Errorf("%s: %s: %v", name, annotation, err)
			}
		}
		if chart.Annotations["fairlead.example.com/operator"] != operator || chart.Annotations[hubPrefix+"license"] != "Apache-2.0" || len(crds) == 0 {
			t.Errorf("%s has the annotations %v", name, chart.Annotations)
		}
		for _, crd := range crds {
			_, group, _ := strings.Cut(crd.Name, ".")
			if crd.Description == "" || crd.DisplayName == "" || !slices.Contains(examples, struct{ APIVersion, Kind string }{group + "/" + crd.Version, crd.Kind}) {
				t.Errorf("%s: %+v has no example, or no text", name, crd)
			}
		}
		if !slices.ContainsFunc(changes, func(c string) bool { return strings.HasPrefix(c, "Apply the CRDs before the manager") }) {
			t.Errorf("%s has the changes %q", name, changes)
		}
		isOfEtcd := slices.ContainsFunc(changes, func(c string) bool { return strings.HasPrefix(c, "EtcdCluster: members are added") })
		if isOfEtcd != (operator == all || operator == "etcd") {
			t.Errorf("%s has changes of etcd: %v", name, isOfEtcd)
		}
	}
	glob(t, "charts/artifacthub-repo.yml")
}
