package apply

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"example.com/fairlead/internal/kit/pods"
)

// The API server makes some fields of a pod template from others that stand beside them (pkg/apis/core/v1/defaults.go
// of Kubernetes): the deprecated serviceAccount and serviceAccountName from each other, when an image is pulled from its
// tag, an emptyDir where a volume has no source. What it makes so belongs to no field manager, and so it stays when what
// it was made from goes or changes: serviceAccount even brings the name back, and an emptyDir excludes the source that
// comes. So an apply that changes the one says the other, too. Any later one may leave it out again: the API server makes
// it again.
//
// What another manager has set is left, as any other field.

// sayCopied adds these fields to a child with a pod template, which is about to be applied to the one that is seen,
// because of these changes.
func (a Children) sayCopied(seen client.Object, child *unstructured.Unstructured, changes []Change) error {
	want, ok := podSpec(child.Object)
	if !ok {
		return nil
	}
	live, err := plain(seen)
	if err != nil {
		return err
	}
	have, _ := podSpec(live)
	owns, err := ownersOf(seen, a.Manager)
	if err != nil {
		return err
	}
	changesPods := slices.ContainsFunc(changes, func(c Change) bool { return strings.HasPrefix(c.Path, "spec.template") })
	sayAccount(want, have, owns, changesPods)
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(want[list]) {
			sayPullPolicy(c, item(have[list], c["name"]), "image", "imagePullPolicy", owns.inPod(list, byName(c)))
		}
	}
	for _, v := range items(want["volumes"]) {
		if image, ok := v["image"].(map[string]any); ok {
			old, _ := item(have["volumes"], v["name"])["image"].(map[string]any)
			sayPullPolicy(image, old, "reference", "pullPolicy", owns.inPod("volumes", byName(v), "image"))
		}
		if len(v) == 1 { // the name
			v["emptyDir"] = map[string]any{}
		}
	}
	return nil
}

// sayAccount says both names of the service account if it changes. Of a template that stays as it is, an account that
// was left behind stays, too: its pods would be replaced.
func sayAccount(want, have map[string]any, owns owners, changesPods bool) {
	name := cmp.Or(text(want["serviceAccountName"]), text(want["serviceAccount"]))
	if name == text(have["serviceAccountName"]) {
		return
	}
	both := owns.inPod()
	isOwn := both.byManager("serviceAccountName") || both.byManager("serviceAccount")
	isOthers := both.byOthers("serviceAccountName") || both.byOthers("serviceAccount")
	if name == "" && (isOthers || !isOwn && !changesPods) {
		return
	}
	want["serviceAccountName"], want["serviceAccount"] = name, name
}

// sayPullPolicy says when an image is pulled that changes, if nothing is wanted.
func sayPullPolicy(want, have map[string]any, image, policy string, owns owners) {
	_, isWanted := want[policy]
	if isWanted || have == nil || text(have[image]) == text(want[image]) || owns.byOthers(policy) {
		return
	}
	want[policy] = string(pods.DefaultPullPolicy(text(want[image])))
}

// owners are whose the fields are at a path of an object.
type owners struct {
	manager, others *fieldpath.Set
	at              fieldpath.Path
}

func ownersOf(obj client.Object, manager string) (owners, error) {
	o := owners{manager: fieldpath.NewSet(), others: fieldpath.NewSet()}
	for _, entry := range obj.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		var fields fieldpath.Set
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return o, err
		}
		if entry.Manager == manager && entry.Subresource == "" {
			o.manager = o.manager.Union(&fields)
		} else {
			o.others = o.others.Union(&fields)
		}
	}
	return o, nil
}

// inPod are those at a path below the spec of a pod template.
func (o owners) inPod(path ...any) owners {
	o.at = fieldpath.MakePathOrDie(append([]any{"spec", "template", "spec"}, path...)...)
	return o
}

func (o owners) byManager(field string) bool {
	return o.manager.Has(append(o.at.Copy(), fieldpath.PathElement{FieldName: &field}))
}

func (o owners) byOthers(field string) bool {
	return o.others.Has(append(o.at.Copy(), fieldpath.PathElement{FieldName: &field}))
}

// byName is the item of a list with the name of this one.
func byName(item map[string]any) any { return fieldpath.KeyByFields("name", text(item["name"])) }

// podSpec is the spec of the pod template of an object; false if it has none.
func podSpec(object any) (map[string]any, bool) {
	for _, field := range []string{"spec", "template", "spec"} {
		fields, ok := object.(map[string]any)
		if !ok {
			return nil, false
		}
		object = fields[field]
	}
	spec, ok := object.(map[string]any)
	return spec, ok
}

// items are those of a list that have fields.
func items(list any) []map[string]any {
	var all []map[string]any
	values, _ := list.([]any)
	for _, value := range values {
		if fields, ok := value.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}

// item is the one of that name; nil if there is none.
func item(list, name any) map[string]any {
	all := items(list)
	if i := slices.IndexFunc(all, func(fields map[string]any) bool { return fields["name"] == name }); i >= 0 {
		return all[i]
	}
	return nil
}

func text(value any) string {
	text, _ := value.(string)
	return text
}
