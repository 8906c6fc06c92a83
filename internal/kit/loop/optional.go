package loop

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

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

// listPatience is how long the first read of a kind that was found waits for the cache's first list of it.
const listPatience = 5 * time.Second

// read returns what get reads of the kind from the cache, or nil if the cluster does not have the kind. One that
// was not found yet is looked for only if it is requested.
//
// The cache of a kind that is removed right after it was found never fills, and whoever reads it waits. So a read that
// takes long has the cluster asked anew.
func (o *optional) read(ctx context.Context, requested bool, get func(context.Context) (client.Object, error)) (client.Object, error) {
	if !o.isFound() {
		if !requested {
			return nil, nil
		}
		if served, err := o.served(ctx); err != nil || !served {
			return nil, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	obj, err := get(limited)
	if err == nil || limited.Err() == nil {
		return obj, err
	}
	if gone, askErr := o.isGone(ctx); gone || askErr != nil {
		return nil, askErr
	}
	return nil, err
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

// isGone says whether the cluster has lost the kind, after a write or a read that went
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
