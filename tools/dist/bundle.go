package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// bundle is one version of one operator for OLM, in the registry+v1 format.
type bundle struct {
	*texts
	version, image string
	skipRange      string
	csv            *v1alpha1.ClusterServiceVersion
	crds           []*unstructured.Unstructured
	labels         map[string]string // of the image, and metadata/annotations.yaml
	files          files
}

// writeBundles writes a bundle per operator: as a folder, as an image, and
// with a Dockerfile for whoever builds images with Docker.
func (r *release) writeBundles() error {
	operators, err := r.chosen()
	if err != nil {
		return err
	}
	for _, operator := range operators {
		made, err := r.bundle(operator)
		if err != nil {
			return fmt.Errorf("bundle of %s: %w", operator, err)
		}
		folder := path.Join("bundles", made.Package, "v"+r.version)
		for name, file := range made.files {
			if err := r.write(path.Join(folder, name), file.content); err != nil {
				return err
			}
		}
		dockerfile := "FROM scratch\n"
		for _, label := range slices.Sorted(maps.Keys(made.labels)) {
			dockerfile += fmt.Sprintf("LABEL %s=%s\n", label, made.labels[label])
		}
		dockerfile += "COPY manifests /manifests/\nCOPY metadata /metadata/\nCOPY tests/scorecard /tests/scorecard/\n"
		if err := r.write(folder+".Dockerfile", []byte(dockerfile)); err != nil {
			return err
		}
		labels := r.imageLabels(made.DisplayName+" bundle", made.Summary)
		maps.Copy(labels, made.labels)
		if err := r.writeContentImage(made.Package+"-bundle-v"+r.version+".tar", made.image, made.files, labels); err != nil {
			return err
		}
	}
	return nil
}

// writeContentImage writes an image that nobody runs: files, for every platform.
func (r *release) writeContentImage(archive, reference string, content files, labels map[string]string) error {
	image, err := imageOf(content, v1.ConfigFile{
		OS: "linux", Architecture: "amd64", Created: v1.Time{Time: r.date}, Config: v1.Config{Labels: labels},
	})
	if err != nil {
		return err
	}
	return r.writeArchive(path.Join(imagesFolder, archive), reference, image)
}

func (r *release) bundle(operator string) (*bundle, error) {
	t, err := r.texts(operator)
	if err != nil {
		return nil, err
	}
	image, err := r.imageByDigest()
	if err != nil {
		return nil, err
	}
	objects, err := r.build(path.Join(configOf(operator), "default"), image)
	if err != nil {
		return nil, err
	}
	replaces, skipRange, err := r.upgradesFrom(operator, t)
	if err != nil {
		return nil, err
	}
	b := &bundle{
		texts: t, version: r.version, skipRange: skipRange, files: files{},
		image: r.base + "-" + t.Package + "-bundle:v" + r.version,
	}
	b.labels = map[string]string{
		"operators.operatorframework.io.bundle.mediatype.v1":       "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1":       "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1":        "metadata/",
		"operators.operatorframework.io.bundle.package.v1":         t.Package,
		"operators.operatorframework.io.bundle.channels.v1":        strings.Join(t.Channels, ","),
		"operators.operatorframework.io.bundle.channel.default.v1": t.Channels[0],
		"operators.operatorframework.io.test.mediatype.v1":         "scorecard+v1",
		"operators.operatorframework.io.test.config.v1":            "tests/scorecard/",
	}
	for _, object := range objects {
		name := ""
		switch object.GetKind() {
		case "CustomResourceDefinition":
			group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
			plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
			name = group + "_" + plural + ".yaml"
			b.crds = append(b.crds, object)
		case "Service":
			name = object.GetName() + "_v1_service.yaml"
			object.SetNamespace("") // the one that the operator is installed in
			err = unstructured.SetNestedField(object.Object, t.Chart, "spec", "selector", "app.kubernetes.io/name")
		case "Role", "RoleBinding": // the manager's rights where it is installed
			name = object.GetName() + "_rbac.authorization.k8s.io_v1_" + strings.ToLower(object.GetKind()) + ".yaml"
			object.SetNamespace("")
			err = bindInSameNamespace(object)
		case "ClusterRole": // for people; the manager's other rights are in the CSV
			if strings.HasSuffix(object.GetName(), "metrics-reader") || strings.HasSuffix(object.GetName(), "-editor-role") ||
				strings.HasSuffix(object.GetName(), "-viewer-role") {
				name = object.GetName() + "_rbac.authorization.k8s.io_v1_clusterrole.yaml"
			}
		}
		if err != nil {
			return nil, err
		}
		if name != "" {
			if err := b.add("manifests/"+name, object.Object); err != nil {
				return nil, err
			}
		}
	}
	if b.csv, err = r.csv(operator, t, objects, image, replaces, skipRange); err != nil {
		return nil, err
	}
	csv, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b.csv)
	if err != nil {
		return nil, err
	}
	delete(csv, "status")
	if err := b.add("manifests/"+t.CSV+".clusterserviceversion.yaml", csv); err != nil {
		return nil, err
	}
	if err := b.add("metadata/annotations.yaml", map[string]any{"annotations": b.labels}); err != nil {
		return nil, err
	}
	return b, b.add("tests/scorecard/config.yaml", scorecard())
}

func (b *bundle) add(name string, content any) error {
	text, err := yaml.Marshal(content)
	b.files[name] = file{mode: 0o644, content: text}
	return err
}

// bindInSameNamespace leaves the subjects' namespace out: then it is that of
// the RoleBinding, which OLM chooses.
func bindInSameNamespace(object *unstructured.Unstructured) error {
	subjects, ok, err := unstructured.NestedSlice(object.Object, "subjects")
	if err != nil || !ok {
		return err
	}
	for _, subject := range subjects {
		delete(subject.(map[string]any), "namespace")
	}
	return unstructured.SetNestedSlice(object.Object, subjects, "subjects")
}

// upgradesFrom is the name of the CSV before this one, if the operator had one,
// and the range of all versions before: OLM may go past those in between.
func (r *release) upgradesFrom(operator string, t *texts) (replaces, skipRange string, err error) {
	for _, p := range r.past {
		has, err := r.had(operator, p)
		if err != nil {
			return "", "", err
		}
		if has && skipRange == "" {
			skipRange = ">=" + p.version + " <" + r.version
		}
		if has {
			replaces = csvName(t, p.version)
		}
	}
	return replaces, skipRange, nil
}

// had says whether a released version has an operator.
func (r *release) had(operator string, p past) (bool, error) {
	if _, err := r.git("cat-file", "-e", p.commit+"^{commit}"); err != nil {
		return false, fmt.Errorf("version %s is built from commit %s, which this clone does not have; "+
			"if it is shallow: git fetch --unshallow", p.version, p.commit)
	}
	_, err := r.git("cat-file", "-e", p.commit+":operators/"+operator+"/operator.go")
	return err == nil, nil
}

// scorecardImage runs the scorecard's own tests; operator-sdk runs it in the cluster.
const scorecardImage = "quay.io/operator-framework/scorecard-test:v1.42.0"

// scorecard is the configuration of `operator-sdk scorecard`.
func scorecard() map[string]any {
	var tests []any
	for _, test := range []struct{ suite, entry, name string }{
		{"basic", "basic-check-spec", "basic-check-spec-test"},
		{"olm", "olm-bundle-validation", "olm-bundle-validation-test"},
		{"olm", "olm-crds-have-validation", "olm-crds-have-validation-test"},
		{"olm", "olm-crds-have-resources", "olm-crds-have-resources-test"},
		{"olm", "olm-spec-descriptors", "olm-spec-descriptors-test"},
		{"olm", "olm-status-descriptors", "olm-status-descriptors-test"},
	} {
		tests = append(tests, map[string]any{
			"entrypoint": []any{"scorecard-test", test.entry}, "image": scorecardImage,
			"labels": map[string]any{"suite": test.suite, "test": test.name},
		})
	}
	return map[string]any{
		"apiVersion": "scorecard.operatorframework.io/v1alpha3",
		"kind":       "Configuration",
		"metadata":   map[string]any{"name": "config"},
		"stages":     []any{map[string]any{"parallel": true, "tests": tests}},
	}
}
