package at

import (
	"context"
	"errors"
	"maps"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
)

// This file proves that an At that is due is still the one of the cache. To read one from the API server costs it as
// much as the update that removes a gate. So if many of a namespace are due at the same instant, all of it are listed
// once. That shows every change that was accepted before the instant; one that comes later is too late.

const (
	// readingLasts is for how long a list is used.
	readingLasts = 2 * time.Second
	// listedForOne is how many Ats can be listed, as metadata and from the API server's cache, for what it costs to read
	// one.
	listedForOne = 64
)

// readSingly is after how many Ats that are read one by one a list is considered.
var readSingly = 16

// readings are the newest lists of Ats, by namespace.
type readings struct {
	mu          sync.Mutex
	byNamespace map[string]*reading
}

// reading is a list of a namespace's Ats, or how many were read singly before there is one.
type reading struct {
	due      time.Time // the latest instant for which it is to be good
	singly   int
	began    time.Time // zero before it is read
	done     chan struct{}
	versions map[string]string // resource versions by name, once it is done
}

// isOld says whether a reading proves nothing any more, also if the clock was set back.
func (r *reading) isOld(now time.Time) bool {
	age := now.Sub(r.began)
	return !r.began.IsZero() && (age < 0 || age > readingLasts)
}

// of returns the reading to use for an At of a namespace, and whether it is the caller who has to read it. It is nil
// if the At is to be read singly.
func (r *readings) of(namespace string, due, now time.Time, all func() int) (use *reading, isToRead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.byNamespace[namespace]
	if found == nil || found.due.Before(due) || found.isOld(now) {
		maps.DeleteFunc(r.byNamespace, func(_ string, r *reading) bool { return r.isOld(now) })
		found = &reading{due: due, done: make(chan struct{})}
		r.byNamespace[namespace] = found
	}
	if !found.began.IsZero() {
		return found, false
	}
	found.singly++
	if found.singly%readSingly != 0 || all() > found.singly*listedForOne {
		return nil, false
	}
	found.began = now
	return found, true
}

// isCurrent returns a conflict if the At, which was due at that time, is not the API server's.
func (o *observer) isCurrent(ctx context.Context, c loop.Caller, at *atv1alpha1.At, due time.Time) error {
	if o.isListed(ctx, c, at, due) {
		return nil
	}
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(o.group.gvk)
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(at), now); err != nil {
		return err
	}
	if now.ResourceVersion != at.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: o.group.gvk.Kind}, at.Name, errors.New("the cache is late"))
	}
	return nil
}

// isListed says whether a list that was begun after the At was due has it as the cache has it. If not, nothing is known.
func (o *observer) isListed(ctx context.Context, c loop.Caller, at *atv1alpha1.At, due time.Time) bool {
	now := o.now()
	if now.Before(due) {
		return false
	}
	use, isToRead := o.readings.of(at.Namespace, due, now, func() int { return o.group.count(ctx, c.Client, at.Namespace) })
	switch {
	case use == nil:
		return false
	case isToRead:
		use.read(ctx, c.Live, o.group.gvk, at.Namespace)
	}
	select {
	case <-use.done:
		return use.versions[at.Name] == at.ResourceVersion
	case <-ctx.Done():
		return false
	}
}

// read lists a namespace. If that fails, each At is read singly until the reading is old.
func (r *reading) read(ctx context.Context, live client.Reader, gvk schema.GroupVersionKind, namespace string) {
	defer close(r.done)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		log.FromContext(ctx).Info("cannot list Ats that are due", "why", err.Error())
		return
	}
	r.versions = make(map[string]string, len(list.Items))
	for i := range list.Items {
		r.versions[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
}

// count is how many Ats of a namespace the cache has.
func (g group) count(ctx context.Context, cache client.Reader, namespace string) int {
	list := g.newList()
	if err := cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return math.MaxInt // not known
	}
	return meta.LenList(list)
}
