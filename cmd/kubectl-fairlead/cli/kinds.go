package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	webv1 "example.com/fairlead/api/web/v1"
)

// Kind is a kind of Fairlead's.
type Kind struct {
	schema.GroupVersionKind
	// List is an empty list of its objects.
	List client.ObjectList
	// Operator is the one whose kind it is.
	Operator string
}

// Name is what kubectl get calls it.
func (k Kind) Name() string { return strings.ToLower(k.Kind) }

// Get reads an object of the kind.
func (k Kind) Get(ctx context.Context, c client.Reader, key client.ObjectKey) (client.Object, error) {
	made, err := Scheme().New(k.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	object := made.(client.Object)
	return object, Explain(c.Get(ctx, key, object))
}

// Resource is what the API calls its objects.
func (k Kind) Resource() string { return k.Name() + "s" }

// Serves says whether the API server has a resource. Without a right on it a request is forbidden, whether there is such a
// resource or not; which there are every user may ask.
func (c *CLI) Serves(ctx context.Context, version schema.GroupVersion, resource string) (bool, error) {
	d, err := c.Discovery()
	if err != nil {
		return false, err
	}
	all, err := d.ServerResourcesForGroupVersionWithContext(ctx, version.String())
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return slices.ContainsFunc(all.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }), nil
}

// Discovery asks the API server what it has.
func (c *CLI) Discovery() (*discovery.DiscoveryClient, error) {
	config, _, err := c.Connect()
	if err != nil {
		return nil, err
	}
	return discovery.NewDiscoveryClientForConfig(config)
}

// Kinds are all, in the order in which they are shown.
func Kinds() []Kind {
	return []Kind{
		{etcdv1beta2.GroupVersion.WithKind("EtcdCluster"), &etcdv1beta2.EtcdClusterList{}, "etcd"},
		{etcdv1beta2.GroupVersion.WithKind("EtcdBackup"), &etcdv1beta2.EtcdBackupList{}, "etcd"},
		{etcdv1beta2.GroupVersion.WithKind("EtcdRestore"), &etcdv1beta2.EtcdRestoreList{}, "etcd"},
		{cachev1alpha1.GroupVersion.WithKind("Memcached"), &cachev1alpha1.MemcachedList{}, "memcached"},
		{webv1.GroupVersion.WithKind("WebServer"), &webv1.WebServerList{}, "webserver"},
		{atv1alpha1.GroupVersion.WithKind("At"), &atv1alpha1.AtList{}, "at"},
	}
}

// KindCalled is the kind of that name, in one or in many.
func KindCalled(name string) (Kind, error) {
	name = strings.ToLower(name)
	if name == "etcd" {
		name = "etcdcluster"
	}
	var names []string
	for _, k := range Kinds() {
		if name == k.Name() || name == k.Name()+"s" {
			return k, nil
		}
		names = append(names, k.Name())
	}
	return Kind{}, fmt.Errorf("%q is no kind of Fairlead's: there are %s", name, strings.Join(names, ", "))
}

// ObjectCalled is the object that KIND/NAME means.
func ObjectCalled(arg string) (Kind, string, error) {
	kindName, name, isBoth := strings.Cut(arg, "/")
	if !isBoth || name == "" {
		return Kind{}, "", fmt.Errorf("%s: name an object as KIND/NAME", arg)
	}
	k, err := KindCalled(kindName)
	return k, name, err
}

// Scheme has all kinds, and Kubernetes' own.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, atv1alpha1.AddToScheme, cachev1alpha1.AddToScheme, etcdv1beta2.AddToScheme, webv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // it has no other reason than a mistake in it
		}
	}
	return scheme
})
