package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// Health is whether an object is well, and what is said of that.
type Health struct {
	// IsWell says whether the condition Ready is true of what is wanted now.
	IsWell bool

	kind, namespace, name string
	object                client.Object
	reason, message       string
	since                 metav1.Time
}

// Of goes by the condition Ready, if that is of what is wanted now.
func Of(k cli.Kind, o client.Object) Health {
	o.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	h := Health{kind: k.Name(), namespace: o.GetNamespace(), name: o.GetName(), object: o, since: o.GetCreationTimestamp()}
	ready := meta.FindStatusCondition(conditionsOf(o), "Ready")
	switch {
	case ready == nil:
		h.reason, h.message = "NotSeen", "its operator has not seen it: is it running?"
	case ready.ObservedGeneration != o.GetGeneration():
		h.reason, h.message, h.since = "NotSeen", "its operator has not seen the last change: is it running?", ready.LastTransitionTime
	default:
		h.IsWell, h.since = ready.Status == metav1.ConditionTrue, ready.LastTransitionTime
		h.reason, h.message = ready.Reason, ready.Message
	}
	return h
}

// withVerdict is the object, and what is said of it.
func (h Health) withVerdict() runtime.Object {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(h.object)
	if err != nil {
		panic(err) // of plain data
	}
	object["verdict"] = map[string]any{
		"ready": h.IsWell, "status": h.reason, "since": h.since.UTC().Format(time.RFC3339), "message": h.message,
	}
	return &unstructured.Unstructured{Object: object}
}

// unlisted is a kind whose objects are not known.
type unlisted struct{ resource, why string }

// list lists kinds. One that cannot be listed keeps no other from being shown, unless none can. Kinds that the cluster
// does not have are left out.
func list(ctx context.Context, c *cli.CLI, k client.Client, kinds []cli.Kind, namespace client.InNamespace, of client.ListOption) (all []Health, missing []unlisted, err error) {
	var errs []error
	isListed := false
	for _, kind := range kinds {
		err := k.List(ctx, kind.List, namespace, of)
		if apierrors.IsForbidden(err) {
			if isServed, whyUnknown := c.Serves(ctx, kind.GroupVersion(), kind.Resource()); whyUnknown == nil && !isServed {
				continue
			}
		}
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			errs = append(errs, err)
			missing = append(missing, unlisted{kind.Resource(), whyUnlisted(kind, string(namespace), err)})
			continue
		}
		isListed = true
		_ = meta.EachListItem(kind.List, func(item runtime.Object) error {
			all = append(all, Of(kind, item.(client.Object)))
			return nil
		})
	}
	if len(errs) > 0 && (!isListed || ctx.Err() != nil) {
		return nil, nil, errors.Join(errs...)
	}
	return all, missing, nil
}

// whyUnlisted says why a kind could not be listed, and what it takes.
func whyUnlisted(kind cli.Kind, namespace string, err error) string {
	if !apierrors.IsForbidden(err) {
		return err.Error()
	}
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	return fmt.Sprintf("not shown: you have no permission to list %s.%s %s", kind.Resource(), kind.Group, where)
}

// codeOf is the exit code: that one is not well is known, whatever else is not.
func codeOf(all []Health, missing []unlisted) int {
	switch {
	case slices.ContainsFunc(all, func(h Health) bool { return !h.IsWell }):
		return 2
	case len(missing) > 0:
		return 1
	}
	return 0
}

// sortByHealth has those first that are not well.
func sortByHealth(all []Health) {
	slices.SortStableFunc(all, func(a, b Health) int {
		return map[bool]int{true: 1}[a.IsWell] - map[bool]int{true: 1}[b.IsWell]
	})
}

// conditionsOf are those of an object of one of the kinds.
func conditionsOf(o client.Object) []metav1.Condition {
	var with struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object, &with)
	}
	if err != nil {
		panic(err) // of plain data
	}
	return with.Status.Conditions
}
