package loop

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// optional is a kind of child that not every cluster has. It is watched from when
// it is found.
type optional struct {
	object  client.Object
	list    func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
	watch   func() error
	unwatch func(context.Context) error

	mu    sync.Mutex
	found bool
}

// served says whether the cluster has the kind. While it has not, every call queries the
// API server.
func (o *optional) served(ctx context.Context) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.found {
		return true, nil
	}
	if has, err := o.ask(ctx); err != nil || !has {
		return false, err
	}
	if err := o.watch(); err != nil {
		return false, err
	}
	o.found = true
	return true, nil
}

// isFound is served, without a request.
func (o *optional) isFound() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.found
}

// isGone says whether the cluster has lost the kind, after a write that was answered
// as if it had. It is watched anew when it is found again.
func (o *optional) isGone(ctx context.Context) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if has, err := o.ask(ctx); err != nil || has {
		return false, err
	}
	o.found = false
	return true, o.unwatch(ctx)
}

// ask queries the API server. The client's own memory of kinds is of no use: it never
// forgets one.
func (o *optional) ask(ctx context.Context) (bool, error) {
	gvk := o.object.GetObjectKind().GroupVersionKind()
	resources, err := o.list(ctx, gvk.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("look up kind %s: %w", gvk.Kind, err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == gvk.Kind }), nil
}
