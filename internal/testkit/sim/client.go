package sim

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Request is one request to a server.
type Request struct {
	Verb        string // as in RBAC
	Kind        *Kind  // nil for what is no object
	Resource    string
	Subresource string
	types.NamespacedName
}

// IsWrite says whether it may change something.
func (r Request) IsWrite() bool { return r.Verb != "get" && r.Verb != "list" }

func (r Request) String() string {
	what := r.Resource
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	if r.Name != "" {
		what += " " + r.Name
	}
	return r.Verb + " " + what
}

// Via carries a request to the server: it calls do, or does not, and returns what the
// client gets.
type Via func(ctx context.Context, r Request, do func() error) error

// Client is a client of a server. It implements client.Client, as far as operators and
// stories need it; what is not simulated is an error.
type Client struct {
	server  *Server
	by      string
	manager string // of fields, unless the request names one
	via     Via
	cache   client.Reader // nil: all reads go to the server
	mapper  meta.RESTMapper
}

var (
	_ client.Client = (*Client)(nil)

	errNotSimulated = errors.New("not simulated")
)

// NewClient makes a client of a server: the word for who uses it, the name under which
// its fields are managed, what carries its requests (nil: nothing does), and the cache
// that it reads from (nil for none).
func NewClient(server *Server, by, manager string, via Via, cache client.Reader) *Client {
	if via == nil {
		via = func(_ context.Context, _ Request, do func() error) error { return do() }
	}
	return &Client{server: server, by: by, manager: manager, via: via, cache: cache, mapper: mapper{server.API}}
}

// Live is the client without its cache.
func (c *Client) Live() *Client {
	live := *c
	live.cache = nil
	return &live
}

func (c *Client) request(ctx context.Context, verb string, k *Kind, key types.NamespacedName, subresource string, do func() error) error {
	return c.via(ctx, Request{Verb: verb, Kind: k, Resource: k.Resource, Subresource: subresource, NamespacedName: key}, do)
}

func (c *Client) write(manager, subresource string, dryRun []string) write {
	if manager == "" {
		manager = c.manager
	}
	return write{by: c.by, manager: manager, subresource: subresource, dryRun: len(dryRun) > 0}
}

// Get reads from the cache, if there is one; unstructured objects never.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, is := obj.(runtime.Unstructured); c.cache != nil && !is {
		return c.cache.Get(ctx, key, obj, opts...)
	}
	k, err := c.server.API.kindOf(obj)
	if err != nil {
		return err
	}
	return c.request(ctx, "get", k, key, "", func() error {
		stored, err := c.server.find(k, key)
		if err != nil {
			return err
		}
		return k.copyInto(stored, obj)
	})
}

// List reads from the cache, if there is one; unstructured objects never.
func (c *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, is := list.(runtime.Unstructured); c.cache != nil && !is {
		return c.cache.List(ctx, list, opts...)
	}
	k, err := c.server.API.kindOf(list)
	if err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	return c.request(ctx, "list", k, types.NamespacedName{Namespace: options.Namespace}, "", func() error {
		var found []client.Object
		c.server.each(k, options.Namespace, func(obj client.Object) bool {
			if options.LabelSelector == nil || options.LabelSelector.Matches(labelSet(obj.GetLabels())) {
				found = append(found, obj)
			}
			return true
		})
		return k.fill(list, found, false)
	})
}

type labelSet map[string]string

func (l labelSet) Has(label string) bool              { _, ok := l[label]; return ok }
func (l labelSet) Get(label string) string            { return l[label] }
func (l labelSet) Lookup(label string) (string, bool) { v, ok := l[label]; return v, ok }

// fill makes copies of stored objects the items of a list.
func (k *Kind) fill(list client.ObjectList, objs []client.Object, named bool) error {
	switch list := list.(type) {
	case *unstructured.UnstructuredList:
		list.Items = make([]unstructured.Unstructured, len(objs))
		for i, obj := range objs {
			if err := k.copyInto(obj, &list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	case *metav1.PartialObjectMetadataList:
		list.Items = make([]metav1.PartialObjectMetadata, len(objs))
		for i, obj := range objs {
			if err := k.copyInto(obj, &list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	field := reflect.ValueOf(list).Elem().FieldByName("Items")
	if !field.IsValid() || k.goType == nil || field.Type().Elem() != k.goType {
		return fmt.Errorf("a %T is no list of %s", list, k.Kind)
	}
	items := reflect.MakeSlice(field.Type(), len(objs), len(objs))
	for i, obj := range objs {
		copied := obj.DeepCopyObject()
		if named {
			copied.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
		}
		items.Index(i).Set(reflect.ValueOf(copied).Elem())
	}
	field.Set(items)
	return nil
}

// Create creates an object.
func (c *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	k, err := c.server.API.kindOf(obj)
	if err != nil {
		return err
	}
	options := (&client.CreateOptions{}).ApplyOptions(opts)
	return c.request(ctx, "create", k, client.ObjectKeyFromObject(obj), "", func() error {
		stored, err := c.server.create(k, obj, c.write(options.FieldManager, "", options.DryRun))
		if err != nil {
			return err
		}
		return k.copyInto(stored, obj)
	})
}

// Update replaces an object.
func (c *Client) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	options := (&client.UpdateOptions{}).ApplyOptions(opts)
	return c.replace(ctx, obj, c.write(options.FieldManager, "", options.DryRun))
}

func (c *Client) replace(ctx context.Context, obj client.Object, w write) error {
	k, err := c.server.API.kindOf(obj)
	if err != nil {
		return err
	}
	return c.request(ctx, "update", k, client.ObjectKeyFromObject(obj), w.subresource, func() error {
		stored, err := c.server.update(k, obj, w)
		if err != nil {
			return err
		}
		return k.copyInto(stored, obj)
	})
}

// Patch patches an object.
func (c *Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	return c.patch(ctx, obj, patch, c.write(options.FieldManager, "", options.DryRun))
}

func (c *Client) patch(ctx context.Context, obj client.Object, patch client.Patch, w write) error {
	k, err := c.server.API.kindOf(obj)
	if err != nil {
		return err
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(obj)
	return c.request(ctx, "patch", k, key, w.subresource, func() error {
		stored, err := c.server.patch(k, key, patch.Type(), data, w)
		if err != nil {
			return err
		}
		return k.copyInto(stored, obj)
	})
}

// Apply is a server-side apply of an unstructured configuration.
func (c *Client) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	content, ok := config.(runtime.Unstructured)
	if !ok {
		return fmt.Errorf("apply of a %T: %w", config, errNotSimulated)
	}
	obj := &unstructured.Unstructured{Object: content.UnstructuredContent()}
	k, err := c.server.API.kindOf(obj)
	if err != nil {
		return err
	}
	options := (&client.ApplyOptions{}).ApplyOptions(opts)
	w := c.write(options.FieldManager, "", options.DryRun)
	w.force = options.Force != nil && *options.Force
	return c.request(ctx, "patch", k, client.ObjectKeyFromObject(obj), "", func() error {
		stored, err := c.server.apply(k, obj, w)
		if err != nil {
			return err
		}
		answer := &unstructured.Unstructured{}
		if err := k.copyInto(stored, answer); err != nil {
			return err
		}
		content.SetUnstructuredContent(answer.Object)
		return nil
	})
}

// Delete deletes an object; what depends on it is the garbage collector's.
func (c *Client) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	k, err := c.server.API.kindOf(obj)
	if err != nil {
		return err
	}
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	if p := options.PropagationPolicy; p != nil && *p != metav1.DeletePropagationBackground {
		return fmt.Errorf("propagation %s: %w", *p, errNotSimulated)
	}
	key := client.ObjectKeyFromObject(obj)
	return c.request(ctx, "delete", k, key, "", func() error {
		return c.server.delete(k, key, options, c.write("", "", options.DryRun))
	})
}

// DeleteAllOf is not simulated.
func (c *Client) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return fmt.Errorf("deletion of a collection: %w", errNotSimulated)
}

// Status is for the subresource status.
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource is for a subresource.
func (c *Client) SubResource(name string) client.SubResourceClient { return subresource{c, name} }

// Scheme has the Go types.
func (c *Client) Scheme() *runtime.Scheme { return c.server.API.Scheme }

// RESTMapper guesses resources by their kinds.
func (c *Client) RESTMapper() meta.RESTMapper { return c.mapper }

// GroupVersionKindFor is the kind of an object.
func (c *Client) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.Scheme())
}

// IsObjectNamespaced says whether an object has a namespace.
func (c *Client) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	k, err := c.server.API.kindOf(obj)
	return err == nil && k.Namespaced, err
}

type subresource struct {
	*Client
	name string
}

func (s subresource) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return fmt.Errorf("get %s: %w", s.name, errNotSimulated)
}

// Create binds a pod to its node.
func (s subresource) Create(ctx context.Context, obj client.Object, sub client.Object, _ ...client.SubResourceCreateOption) error {
	binding, ok := sub.(*corev1.Binding)
	if !ok {
		return fmt.Errorf("create %s: %w", s.name, errNotSimulated)
	}
	k, err := s.server.API.kindOf(obj)
	if err != nil {
		return err
	}
	return s.request(ctx, "create", k, client.ObjectKeyFromObject(obj), s.name, func() error {
		return s.server.Bind(client.ObjectKeyFromObject(obj), binding.Target.Name, s.by)
	})
}

func (s subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	return s.replace(ctx, obj, s.write(options.FieldManager, s.name, options.DryRun))
}

func (s subresource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	return s.patch(ctx, obj, patch, s.write(options.FieldManager, s.name, options.DryRun))
}

func (s subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return fmt.Errorf("apply %s: %w", s.name, errNotSimulated)
}

// mapper is a RESTMapper by the usual rules.
type mapper struct{ api *API }

var _ meta.RESTMapper = mapper{}

func (m mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) == 0 {
		return nil, &meta.NoKindMatchError{GroupKind: gk}
	}
	k, err := m.api.kind(gk.WithVersion(versions[0]))
	if err != nil {
		return nil, err
	}
	scope := meta.RESTScopeNamespace
	if !k.Namespaced {
		scope = meta.RESTScopeRoot
	}
	return &meta.RESTMapping{Resource: k.GroupVersion().WithResource(k.Resource), GroupVersionKind: k.GroupVersionKind, Scope: scope}, nil
}

func (m mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	mapping, err := m.RESTMapping(gk, versions...)
	return []*meta.RESTMapping{mapping}, err
}

func (mapper) KindFor(schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, errNotSimulated
}

func (mapper) KindsFor(schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return nil, errNotSimulated
}

func (mapper) ResourceFor(schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return schema.GroupVersionResource{}, errNotSimulated
}

func (mapper) ResourcesFor(schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return nil, errNotSimulated
}

func (mapper) ResourceSingularizer(resource string) (string, error) { return resource, nil }
