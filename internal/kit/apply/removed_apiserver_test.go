//go:build apiserver

package apply_test

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestRemovedFieldsGo: whatever field of a pod template an edit sets, and another removes, nothing is left of it: the template
// is as that of an object which never had the field.
func TestRemovedFieldsGo(t *testing.T) {
	s := newStage(t)
	data, err := os.ReadFile("testdata/template.yaml")
	s.must(err)
	full := readTemplate(t, string(data))
	if _, err := s.fresh(full); err != nil {
		t.Fatalf("testdata/template.yaml is refused: %v", err)
	}
	requireEveryField(t, full)

	var edits []removal
	each(full, "", func(path string, without map[string]any) { edits = append(edits, removal{path, without, full}) })
	edits = append(edits, alternatives(t)...)
	var workers sync.WaitGroup
	queue := make(chan int)
	for range 4 {
		workers.Go(func() {
			for i := range queue {
				s.removes(fmt.Sprintf("child-%d", i), edits[i])
			}
		})
	}
	for i := range edits {
		queue <- i
	}
	close(queue)
	workers.Wait()
}

// removal is an edit of a pod template to another one, which is undone.
type removal struct {
	what          string
	without, with map[string]any
}

// alternatives are fields that the API server makes from others.
func alternatives(t *testing.T) (all []removal) {
	for _, pair := range [][2]string{
		{"{}", "{serviceAccountName: rights}"},
		{"{}", "{serviceAccount: rights}"},
		{"{serviceAccountName: a}", "{serviceAccountName: b}"},
		{"{serviceAccountName: a}", "{serviceAccount: b}"},
		{"{serviceAccount: a}", "{serviceAccount: b}"},
		{"{volumes: [{name: v}]}", "{volumes: [{name: v, configMap: {name: c}}]}"},
		{"{volumes: [{name: v}]}", "{volumes: [{name: v, emptyDir: {medium: Memory}}]}"},
		{"{}", "{volumes: [{name: v}]}"},
		{`{volumes: [{name: v, image: {reference: "a:1"}}]}`, "{volumes: [{name: v, image: {reference: a}}]}"},
		{`{initContainers: [{name: i, image: "i:1"}]}`, "{initContainers: [{name: i, image: i}]}"},
		{`{initContainers: [{name: i, image: "i:1"}]}`, `{initContainers: [{name: i, image: "i@sha256:` + strings.Repeat("0", 64) + `"}]}`},
		{`{initContainers: [{name: i, image: "i:1"}]}`, `{initContainers: [{name: i, image: "i:latest@sha256:` + strings.Repeat("0", 64) + `"}]}`},
		{`{initContainers: [{name: i, image: "i:latest"}]}`, `{initContainers: [{name: i, image: "i:latest", imagePullPolicy: Never}]}`},
		{"{}", "{hostNetwork: true}"},
	} {
		var both [2]map[string]any
		for i, text := range pair {
			both[i] = readTemplate(t, `{metadata: {labels: {app: toy}}, spec: {containers: [{name: server, image: "server:1", ports: [{containerPort: 80}]}]}}`)
			var spec map[string]any
			if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
				t.Fatal(err)
			}
			maps.Copy(both[i]["spec"].(map[string]any), spec)
		}
		all = append(all, removal{pair[0] + " and " + pair[1], both[0], both[1]})
	}
	return all
}

// removes makes an edit and undoes it, twice: the first time, what a POST has set is there.
func (s *stage) removes(name string, edit removal) {
	before, err := s.fresh(edit.without)
	if apierrors.IsInvalid(err) {
		return // the field is required
	}
	if err != nil {
		s.Errorf("%s: %v", edit.what, err)
		return
	}
	after, err := s.fresh(edit.with)
	if err != nil {
		s.Errorf("%s: %v", edit.what, err)
		return
	}
	now := &appsv1.Deployment{}
	for i, is := range []string{"made", "set", "removed", "set again", "removed again"} {
		template, want := edit.without, before
		if i%2 == 1 {
			template, want = edit.with, after
		}
		if _, err := s.children.Apply(s.Context(), s.owner, now, s.workload(name, template)); err != nil {
			s.Errorf("%s is %s: %v", edit.what, is, err)
			return
		}
		if diff := cmp.Diff(want, contentOf(s, now)); diff != "" {
			s.Errorf("%s is %s, and the template is not as a new one (-want +got):\n%s", edit.what, is, diff)
			return
		}
	}
}

// fresh is the template of a Deployment that is made with it.
func (s *stage) fresh(template map[string]any) (any, error) {
	made := &appsv1.Deployment{}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(s.workload("", template).(interface{ UnstructuredContent() map[string]any }).UnstructuredContent(), made))
	made.Name, made.GenerateName = "", "fresh-"
	err := s.Create(s.Context(), made, client.DryRunAll)
	return contentOf(s, made), err
}

// contentOf is the template of a Deployment, but for empty structs: they say nothing.
func contentOf(s *stage, d *appsv1.Deployment) any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d.Spec.Template)
	s.must(err)
	return withoutEmpty(fields)
}

func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		rest := map[string]any{}
		for field, below := range value {
			if bare := withoutEmpty(below); !reflect.DeepEqual(bare, map[string]any{}) {
				rest[field] = bare
			}
		}
		return rest
	case []any:
		for i := range value {
			value[i] = withoutEmpty(value[i])
		}
	}
	return value
}

// workload is a Deployment with this template, as Go's type for one has it.
func (s *stage) workload(name string, template map[string]any) runtime.ApplyConfiguration {
	var typed corev1.PodTemplateSpec
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(template, &typed))
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	s.must(err)
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{
			"replicas": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "toy"}}, "template": template,
		},
	}}
	owner, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.ownedBy())
	s.must(err)
	u.Object["metadata"] = map[string]any{"ownerReferences": []any{owner}}
	u.SetNamespace(s.owner.Namespace)
	u.SetName(name)
	u.SetLabels(s.labels())
	return applied{u}
}

// applied is an unstructured object that can be applied.
type applied struct{ *unstructured.Unstructured }

func (applied) IsApplyConfiguration() {}

// each calls do for each field and item below a value, with the whole without it.
func each(whole map[string]any, path string, do func(string, map[string]any)) {
	var walk func(value any, path string, at []any)
	walk = func(value any, path string, at []any) {
		switch value := value.(type) {
		case map[string]any:
			for _, field := range slices.Sorted(maps.Keys(value)) {
				below := append(slices.Clone(at), field)
				do(path+"."+field, removed(whole, below).(map[string]any))
				walk(value[field], path+"."+field, below)
			}
		case []any:
			for i, item := range value {
				below := append(slices.Clone(at), i)
				do(fmt.Sprintf("%s[%d]", path, i), removed(whole, below).(map[string]any))
				walk(item, fmt.Sprintf("%s[%d]", path, i), below)
			}
		}
	}
	walk(whole, path, nil)
}

// removed is a value without what is at a path.
func removed(value any, at []any) any {
	switch step := at[0].(type) {
	case string:
		rest := maps.Clone(value.(map[string]any))
		if len(at) == 1 {
			delete(rest, step)
		} else {
			rest[step] = removed(rest[step], at[1:])
		}
		return rest
	case int:
		rest := slices.Clone(value.([]any))
		if len(at) == 1 {
			return slices.Delete(rest, step, step+1)
		}
		rest[step] = removed(rest[step], at[1:])
		return rest
	}
	return value
}

func readTemplate(t *testing.T, text string) (template map[string]any) {
	t.Helper()
	var typed corev1.PodTemplateSpec
	if err := yaml.UnmarshalStrict([]byte(text), &typed); err != nil {
		t.Fatal(err)
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		u := &unstructured.Unstructured{}
		err = u.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"PodTemplate","template":` + string(data) + `}`))
		template, _ = u.Object["template"].(map[string]any)
	}
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// without are the fields that testdata/template.yaml does not have, and why.
var without = map[string]string{
	"ephemeralContainers":   "not in templates",
	"activeDeadlineSeconds": "not in templates of Deployments",
	"serviceAccount":        "the other name of serviceAccountName, see alternatives",
	"priority":              "follows from priorityClassName",
	"hostnameOverride":      "excludes hostname",
	"windowsOptions":        "excludes what is for Linux",
	// Behind feature gates that are off.
	"schedulingGroup": "", "evictionResponders": "", "fileKeyRef": "", "podCertificate": "", "user": "", "defaultUser": "", "mode": "",
	"bindMountOptions": "", "protocol": "", "namespace": "",
	// No kubelet mounts these any more.
	"gcePersistentDisk": "", "awsElasticBlockStore": "", "gitRepo": "", "glusterfs": "", "rbd": "", "cinder": "", "cephfs": "", "flocker": "",
	"vsphereVolume": "", "quobyte": "", "azureDisk": "", "photonPersistentDisk": "", "portworxVolume": "", "scaleIO": "", "storageos": "",
}

// requireEveryField wants each field of each of Kubernetes' types for pod templates at least once.
func requireEveryField(t *testing.T, template map[string]any) {
	t.Helper()
	has := map[reflect.Type]map[string]bool{}
	var visit func(kind reflect.Type, value any)
	visit = func(kind reflect.Type, value any) {
		switch kind.Kind() { //nolint:exhaustive // the others have no fields
		case reflect.Pointer:
			visit(kind.Elem(), value)
		case reflect.Slice:
			values, _ := value.([]any)
			for _, value := range values {
				visit(kind.Elem(), value)
			}
		case reflect.Struct:
			if kind.PkgPath() != reflect.TypeFor[corev1.Pod]().PkgPath() {
				return
			}
			if has[kind] == nil {
				has[kind] = map[string]bool{}
			}
			fields, _ := value.(map[string]any)
			for i := range kind.NumField() {
				name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
				if name == "" {
					visit(kind.Field(i).Type, value) // inline
					continue
				}
				below, is := fields[name]
				has[kind][name] = has[kind][name] || is
				if is {
					visit(kind.Field(i).Type, below)
				}
			}
		}
	}
	visit(reflect.TypeFor[corev1.PodTemplateSpec](), template)
	for kind, fields := range has {
		for name, is := range fields {
			if _, known := without[name]; !is && !known {
				t.Errorf("testdata/template.yaml has no %s of any %s", name, kind)
			}
		}
	}
}

// TestAccountsOfOthersStay: the service account that another manager has set is left, and so is one that a version of before
// has left behind, for as long as the pods need not be replaced.
func TestAccountsOfOthersStay(t *testing.T) {
	for name, tc := range map[string]struct {
		set   func(*stage, *appsv1.Deployment)
		stays bool
	}{
		"by another manager": {stays: true, set: func(s *stage, d *appsv1.Deployment) {
			s.must(s.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"serviceAccountName":"rights"}}}}`)), client.FieldOwner("kubectl-set")))
		}},
		"left behind": {set: func(s *stage, d *appsv1.Deployment) {
			for _, patch := range []string{`{"serviceAccountName":"rights"}`, `{}`} {
				s.must(s.Patch(t.Context(), d, client.RawPatch(types.ApplyPatchType,
					[]byte(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":`+patch+`}}}`)), client.FieldOwner("earlier"), client.ForceOwnership))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			d := &appsv1.Deployment{}
			account := func(is string, want runtime.ApplyConfiguration) string {
				outcome, err := s.apply(d, want)
				s.must(err)
				if is != "made" && !outcome.Applied {
					t.Errorf("%s: not applied", is)
				}
				return d.Spec.Template.Spec.ServiceAccountName
			}
			account("made", s.deployment())
			tc.set(s, d)
			scaled := s.deployment()
			scaled.Spec.WithReplicas(3)
			if is := account("scaled", scaled); is != "rights" {
				t.Errorf("once it is scaled, the account is %q", is)
			}
			scaled.Spec.Template.Spec.Containers[0].WithImage("server:2")
			if is := account("another image", scaled); is == "rights" != tc.stays {
				t.Errorf("with another image, the account is %q", is)
			}
		})
	}
}
