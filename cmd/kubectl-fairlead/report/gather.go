package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	cnatv1alpha1 "example.com/fairlead/api/cnat/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// reported are the kinds of which a report has the objects: first Fairlead's, and then those that
// these may own, each behind its owners.
func reported() (own, owned []schema.GroupVersionResource) {
	for _, kind := range cli.Kinds() {
		own = append(own, kind.GroupVersion().WithResource(kind.Resource()))
	}
	own = append(own, cnatv1alpha1.GroupVersion.WithResource("ats"))
	for _, kind := range cli.Ownable() {
		if resource, _ := meta.UnsafeGuessKindToResource(kind); kind.Kind != "Secret" { // which are not read
			owned = append(owned, resource)
		}
	}
	return own, owned
}

// gathering is what a report is made from.
type gathering struct {
	objects dynamic.Interface
	core    corev1client.CoreV1Interface
	redactor
	found   []found
	leftOut []string
}

// found is an object of the report.
type found struct {
	*unstructured.Unstructured
	resource   string
	isAts      bool // an At, or owned by one
	isOperator bool // of an operator's installation
}

// without notes what the report does not have.
func (g *gathering) without(what string, err error) {
	g.leftOut = append(g.leftOut, what+": "+g.text(err.Error()))
}

// each lists objects page by page. Kinds that the cluster does not have are passed over.
func (g *gathering) each(ctx context.Context, of schema.GroupVersionResource, namespace, selector string,
	do func(*unstructured.Unstructured)) error {
	o := metav1.ListOptions{Limit: 500, LabelSelector: selector}
	for {
		list, err := g.objects.Resource(of).Namespace(namespace).List(ctx, o)
		if err != nil {
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// gather finds Fairlead's objects, and what they own.
func (g *gathering) gather(ctx context.Context, namespace string) {
	owners := map[types.UID]bool{} // whether these are Ats
	take := func(o *unstructured.Unstructured, resource string, isAts, isUsers bool) {
		owners[o.GetUID()] = isAts
		g.names[o.GetName()], g.names[o.GetNamespace()] = true, true
		if isAts && resource == "pods" {
			g.lastWords(o.Object)
		}
		g.object(o.Object, isUsers)
		g.found = append(g.found, found{o, resource, isAts, false})
	}
	own, owned := reported()
	for _, resource := range own {
		err := g.each(ctx, resource, namespace, "", func(o *unstructured.Unstructured) {
			take(o, resource.GroupResource().String(), resource.Resource == "ats", true)
		})
		if err != nil {
			g.without(resource.GroupResource().String(), err)
		}
	}
	if len(owners) == 0 {
		return
	}
	for _, resource := range owned {
		err := g.each(ctx, resource, namespace, "", func(o *unstructured.Unstructured) {
			for _, owner := range o.GetOwnerReferences() {
				if isAts, isOwner := owners[owner.UID]; isOwner {
					take(o, resource.Resource, isAts, false)
					return
				}
			}
			g.learnFiles(o.Object) // those that a pod template mounts are the user's own
		})
		if err != nil {
			g.without(resource.Resource, err)
		}
	}
}

// operators finds the operators' Deployments, and their pods.
func (g *gathering) operators(ctx context.Context) {
	var managers []*unstructured.Unstructured
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	keep := func(o *unstructured.Unstructured) {
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err == nil && cli.ManagerIn(&d) != nil {
			managers = append(managers, o)
		}
	}
	if err := g.each(ctx, deployments, "", "", keep); err != nil {
		g.without("operators' deployments in all namespaces", err)
		for _, namespace := range cli.InstalledIn {
			_ = g.each(ctx, deployments, namespace, "", keep) // which is as likely forbidden as not there
		}
	}
	seen := map[types.UID]bool{}
	take := func(o *unstructured.Unstructured, resource string) {
		if !seen[o.GetUID()] {
			seen[o.GetUID()] = true
			g.object(o.Object, false)
			g.found = append(g.found, found{o, resource, false, true})
		}
	}
	for _, manager := range managers {
		selected, _, _ := unstructured.NestedStringMap(manager.Object, "spec", "selector", "matchLabels")
		take(manager, "deployments")
		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		err := g.each(ctx, pods, manager.GetNamespace(), labels.SelectorFromSet(selected).String(),
			func(o *unstructured.Unstructured) { take(o, "pods") })
		if err != nil {
			g.without("operators' pods in namespace "+manager.GetNamespace(), err)
		}
	}
}

// events are those of the objects, and of pods of theirs that are gone, in lines, the oldest first.
func (g *gathering) events(ctx context.Context, namespace string) []string {
	var all []string // each begins with its time
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	err := g.each(ctx, events, namespace, "", func(e *unstructured.Unstructured) {
		if text := g.event(e); text != "" {
			all = append(all, text)
		}
	})
	if err != nil {
		g.without("events", err)
	}
	slices.Sort(all)
	return all
}

// event is one in a line, or nothing if it is about nothing of the report.
func (g *gathering) event(e *unstructured.Unstructured) string {
	about, _, _ := unstructured.NestedStringMap(e.Object, "involvedObject")
	i := slices.IndexFunc(g.found, func(f found) bool { return string(f.GetUID()) == about["uid"] })
	if i < 0 && about["kind"] == "Pod" {
		i = slices.IndexFunc(g.found, func(f found) bool {
			return f.GetNamespace() == about["namespace"] && strings.HasPrefix(about["name"], f.GetName()+"-")
		})
	}
	if i < 0 {
		return ""
	}
	message, _, _ := unstructured.NestedString(e.Object, "message")
	if g.found[i].isAts {
		message = beforeLastWords(message)
	}
	of := e.GetNamespace() + "/" + strings.ToLower(about["kind"]) + "/" + about["name"]
	return strings.Join([]string{
		lastSeen(e), fmt.Sprint(e.Object["type"]), fmt.Sprint(e.Object["reason"]), of, strings.ReplaceAll(g.text(message), "\n", " "),
	}, "\t")
}

func lastSeen(event *unstructured.Unstructured) string {
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}, {"metadata", "creationTimestamp"}} {
		if at, isText, _ := unstructured.NestedString(event.Object, path...); isText && at != "" {
			return at
		}
	}
	return ""
}
