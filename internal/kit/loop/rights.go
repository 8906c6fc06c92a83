package loop

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Rights are verbs by what they are for: "pods", "deployments.apps", "pods/resize", "webservers/status.my.domain".
type Rights map[string][]string

// Add adds verbs for something.
func (r Rights) Add(what string, verbs ...string) {
	r[what] = append(r[what], verbs...)
	slices.Sort(r[what])
	r[what] = slices.Compact(r[what])
}

// Rights are what the operator's role must allow for a kind: to read and watch it,
// its children and what else it watches, to write its status, to name it as an
// owner, its Writes, and events. What a Call sends the operator knows alone.
func (k Kind[T, S, P]) Rights(scheme *runtime.Scheme) (Rights, error) {
	rights := Rights{}
	rights.Add("events.events.k8s.io", "create", "patch")
	names := map[string]string{} // resources by kind
	objects := []client.Object{k.Empty}
	for _, child := range k.Children {
		objects = append(objects, child.Empty)
	}
	for _, watch := range k.Watches {
		if watch.Without != "" {
			continue // a role of its own
		}
		objects = append(objects, watch.Object)
	}
	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, err
		}
		gvr, _ := meta.UnsafeGuessKindToResource(gvk)
		names[gvk.Kind] = resourceName(gvr)
		rights.Add(names[gvk.Kind], "get", "list", "watch")
	}
	resource, group, _ := strings.Cut(names[KindOf(k.Empty)], ".")
	rights.Add(resource+"/status."+group, "update")
	rights.Add(resource+"/finalizers."+group, "update")
	for _, write := range k.Writes {
		verb, what, _ := strings.Cut(write, " ")
		kind, _, _ := strings.Cut(what, "/")
		name, ok := names[kind]
		if !ok && !strings.HasPrefix(verb, "call/") {
			return nil, fmt.Errorf("%q: %s is neither a child nor watched", write, kind)
		}
		switch verb {
		case "apply":
			rights.Add(name, "create", "patch")
		case "create", "patch", "delete":
			rights.Add(name, verb)
		default: // what a Call sends the operator knows alone
		}
	}
	return rights, nil
}

func resourceName(r schema.GroupVersionResource) string { return r.GroupResource().String() }
