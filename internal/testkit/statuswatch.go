package testkit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// statusWatch puts every version of every object of a kind to the rules for
// as long as a run lasts, so that what was wrong for a moment is found too.
type statusWatch struct {
	client    client.WithWatch
	namespace string
	kind      client.Object
	each      func(before, now client.Object) error
	lie       context.CancelCauseFunc
}

func (w *statusWatch) run(ctx context.Context) {
	list, err := typedListOf(w.kind, w.client.Scheme())
	if err != nil {
		w.lie(err)
		return
	}
	for ctx.Err() == nil {
		events, err := w.client.Watch(ctx, list, client.InNamespace(w.namespace))
		if err != nil {
			sleep(ctx, pollEvery)
			continue
		}
		last := map[types.UID]client.Object{}
		for event := range events.ResultChan() {
			if event.Type == watch.Error && isUnreadable(event.Object) {
				w.lie(fmt.Errorf("status is not of the usual form: %w", apierrors.FromObject(event.Object)))
				return
			}
			obj, ok := event.Object.(client.Object)
			if !ok || event.Type == watch.Deleted || event.Type == watch.Error {
				continue
			}
			if err := w.judge(last[obj.GetUID()], obj); err != nil {
				w.lie(err)
				return
			}
			last[obj.GetUID()] = obj
		}
		events.Stop()
	}
}

// isUnreadable says of the object of an error whether client-go could not read an object
// into the Go type of its kind. Other errors are of the connection.
func isUnreadable(failure runtime.Object) bool {
	return strings.Contains(apierrors.FromObject(failure).Error(), "unable to decode watch event")
}

func (w *statusWatch) judge(before, now client.Object) error {
	err := errors.Join(CheckConditions(now), CheckHealth(now))
	if before != nil {
		err = errors.Join(err, CheckTransition(before, now))
	}
	if w.each != nil {
		err = errors.Join(err, w.each(before, now))
	}
	if err != nil {
		return fmt.Errorf("seen at resource version %s: %w", now.GetResourceVersion(), err)
	}
	return nil
}

// typedListOf is an empty list of a kind, for objects of its Go type.
func typedListOf(kind client.Object, scheme *runtime.Scheme) (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(kind, scheme)
	if err != nil {
		return nil, err
	}
	list, err := scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	typed, ok := list.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list of objects", list)
	}
	return typed, nil
}

// listOf is an empty list of a kind, for objects as the API server has them.
func listOf(kind client.Object, scheme *runtime.Scheme) (*unstructured.UnstructuredList, error) {
	gvk, err := apiutil.GVKForObject(kind, scheme)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list, err
}
