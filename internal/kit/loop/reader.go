package loop

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/apply"
)

// Reader reads from the cache. A read fails while the cache does not show what
// this process wrote: the loop then waits for it.
type Reader struct {
	// Live reads from the API server.
	Live client.Reader
	// Children are those that have a name.
	Children Children
	// Sees are the kinds that are watched by a right which an install may leave out, where there is that right.
	Sees map[string]bool
	// Missing are the kinds that the object requests, and the cluster does not have.
	Missing []string

	cache  client.Reader
	memory *apply.Memory
	found  found
}

// ReaderOf reads all that is not a child from c, for tests.
func ReaderOf(c client.Reader, children Children) *Reader {
	return &Reader{Live: c, Children: children, cache: c, memory: apply.NewMemory(time.Now)}
}

// found are objects that the cache does not show, as the API server has them.
type found map[foundKey]client.Object

type foundKey struct {
	kind string
	client.ObjectKey
}

func foundKeyOf(obj client.Object) foundKey {
	return foundKey{KindOf(obj), client.ObjectKeyFromObject(obj)}
}

// wrote has an object, if it was found, as a write has made it: what is decided next is about that one.
func (f found) wrote(obj client.Object) {
	key := foundKeyOf(obj)
	switch before, ok := f[key]; {
	case !ok:
	case reflect.TypeOf(before) == reflect.TypeOf(obj):
		f[key] = obj
	default: // the answer may be a part of it only
		delete(f, key)
	}
}

// deleted drops an object.
func (f found) deleted(obj client.Object) { delete(f, foundKeyOf(obj)) }

// lateError says that the cache is behind a write of this process, and after how
// long it counts as lost.
type lateError struct{ wait time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("the cache does not yet show what was written; it is given another %s", e.wait)
}

// Get reads an object.
func (r *Reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if found, ok := r.found[foundKey{KindOf(obj), key}]; ok {
		return convert(found, obj)
	}
	err := r.cache.Get(ctx, key, obj, opts...)
	cached := obj
	if apierrors.IsNotFound(err) {
		cached = nil
	} else if err != nil {
		return err
	}
	if wait, late := r.memory.Behind(KindOf(obj), key, cached); late {
		return &lateError{wait}
	}
	return err
}

// List reads a list.
func (r *Reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := r.cache.List(ctx, list, opts...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		obj, ok := item.(client.Object)
		if !ok {
			return nil
		}
		if wait, late := r.memory.Behind(KindOf(obj), client.ObjectKeyFromObject(obj), obj); late {
			return &lateError{wait}
		}
		return nil
	})
}

// child reads a child; it is empty if there is none.
func (r *Reader) child(ctx context.Context, key client.ObjectKey, empty func() client.Object) (client.Object, error) {
	obj := empty()
	err := r.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return empty(), nil
	}
	return obj, err
}

// convert makes to, of any Go type, what from is.
func convert(from, to client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, to)
}
