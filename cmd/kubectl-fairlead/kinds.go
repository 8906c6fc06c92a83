package main

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	webv1 "example.com/fairlead/api/web/v1"
)

// kind is a kind of Fairlead's.
type kind struct {
	schema.GroupVersionKind
	list client.ObjectList
}

// name is what kubectl get calls it.
func (k kind) name() string { return strings.ToLower(k.Kind) }

// get reads an object of the kind.
func (k kind) get(ctx context.Context, c client.Reader, key client.ObjectKey) (client.Object, error) {
	made, err := newScheme().New(k.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	object := made.(client.Object)
	return object, explain(c.Get(ctx, key, object))
}

// kinds are all, in the order in which they are shown.
func kinds() []kind {
	return []kind{
		{etcdv1beta2.GroupVersion.WithKind("EtcdCluster"), &etcdv1beta2.EtcdClusterList{}},
		{etcdv1beta2.GroupVersion.WithKind("EtcdBackup"), &etcdv1beta2.EtcdBackupList{}},
		{etcdv1beta2.GroupVersion.WithKind("EtcdRestore"), &etcdv1beta2.EtcdRestoreList{}},
		{cachev1alpha1.GroupVersion.WithKind("Memcached"), &cachev1alpha1.MemcachedList{}},
		{webv1.GroupVersion.WithKind("WebServer"), &webv1.WebServerList{}},
		{atv1alpha1.GroupVersion.WithKind("At"), &atv1alpha1.AtList{}},
	}
}

// kindCalled is the kind of that name, in one or in many.
func kindCalled(name string) (kind, error) {
	name = strings.ToLower(name)
	if name == "etcd" {
		name = "etcdcluster"
	}
	var names []string
	for _, k := range kinds() {
		if name == k.name() || name == k.name()+"s" {
			return k, nil
		}
		names = append(names, k.name())
	}
	return kind{}, fmt.Errorf("%q is no kind of Fairlead's: there are %s", name, strings.Join(names, ", "))
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		atv1alpha1.AddToScheme, cachev1alpha1.AddToScheme, etcdv1beta2.AddToScheme, webv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // it has no other reason than a mistake in it
		}
	}
	return scheme
}

// conditionsOf are those of an object of one of the kinds.
func conditionsOf(o client.Object) []metav1.Condition {
	switch o := o.(type) {
	case *etcdv1beta2.EtcdCluster:
		return o.Status.Conditions
	case *etcdv1beta2.EtcdBackup:
		return o.Status.Conditions
	case *etcdv1beta2.EtcdRestore:
		return o.Status.Conditions
	case *cachev1alpha1.Memcached:
		return o.Status.Conditions
	case *webv1.WebServer:
		return o.Status.Conditions
	case *atv1alpha1.At:
		return o.Status.Conditions
	}
	return nil
}
