//go:build apiserver

package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"example.com/fairlead/internal/testkit"
)

// seen is what a reconcile of a ConfigMap has read.
type seen struct {
	object  types.NamespacedName
	secrets int // in its namespace
	all     int // ConfigMaps of the name, in all namespaces
}

// reading is an operator of ConfigMaps that reads the Secrets beside them.
func reading(saw chan<- seen) Operator {
	return Operator{Name: "reader", AddToScheme: func(*runtime.Scheme) error { return nil }, Kinds: []Kind{{
		Object: &corev1.ConfigMap{}, Watches: []client.Object{&corev1.Secret{}},
		New: func(p Parts) (*Controller, error) {
			read := func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				if err := p.Client.Get(ctx, req.NamespacedName, &corev1.ConfigMap{}); err != nil || req.Name != "it" {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				var secrets corev1.SecretList
				var all corev1.ConfigMapList
				if err := errors.Join(p.Client.List(ctx, &secrets, client.InNamespace(req.Namespace)), p.Client.List(ctx, &all)); err != nil {
					return reconcile.Result{}, err
				}
				s := seen{object: req.NamespacedName, secrets: len(secrets.Items)}
				for _, one := range all.Items {
					if one.Name == "it" {
						s.all++
					}
				}
				saw <- s
				return reconcile.Result{}, nil
			}
			return &Controller{
				Name: "ConfigMap", Reconciler: reconcile.Func(read), First: time.Millisecond, Longest: time.Second,
				Alarms: silent{source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error { return nil })},
				Sources: []Source{
					{Object: &corev1.ConfigMap{}, Handler: &handler.EnqueueRequestForObject{}},
					{Object: &corev1.Secret{}, Handler: handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return nil })},
				},
			}, nil
		},
	}}}
}

// mayRead gives a user the right to see some resources of a namespace.
func mayRead(t *testing.T, c client.Client, user, namespace string, resources ...string) {
	t.Helper()
	name := user + "-" + resources[0]
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get", "list", "watch"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if err := errors.Join(c.Create(t.Context(), role), c.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
}

// populate creates a ConfigMap, and three Secrets beside it.
func populate(t *testing.T, c client.Client, namespace string) types.NamespacedName {
	t.Helper()
	for i := range 3 {
		if err := c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("s%d", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	it := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "it"}}
	if err := c.Create(t.Context(), it); err != nil {
		t.Fatal(err)
	}
	return client.ObjectKeyFromObject(it)
}

// A namespace that is gone, or in which there is no Role, holds up no other. When it can be read it is served, and at once
// with all that is in it.
func TestNamespacesThatCannotBeRead(t *testing.T) {
	server := testkit.Server(t)
	c := newClient(t, server.Config)
	a, unbound := server.NewNamespace(t), server.NewNamespace(t)
	gone, user := a+"-gone", a+"-user"
	mayRead(t, c, user, a, "configmaps", "secrets")
	inA, inUnbound := populate(t, c, a), populate(t, c, unbound)

	cfg := rest.CopyConfig(server.Config)
	cfg.Impersonate.UserName = user
	saw := make(chan seen, 100)
	address := freeAddress(t)
	start(t, cfg, Options{ProbeAddress: address, Namespaces: []string{a, gone, unbound}}, reading(saw))

	next := func(what string, want seen) {
		t.Helper()
		deadline := time.After(90 * time.Second)
		for last := (seen{}); last != want; { // operators that start again see all that is there
			select {
			case last = <-saw:
			case <-deadline:
				t.Fatalf("%s: nothing but %+v was reconciled, want %+v", what, last, want)
			}
		}
	}
	next("one that can be read", seen{object: inA, secrets: 3, all: 1})
	eventually(t, "readyz", func() error {
		if code, err := get(t, "http://"+address+"/readyz", ""); err != nil || code != http.StatusOK {
			return fmt.Errorf("%d, %w", code, err)
		}
		return nil
	})

	// An object without what is beside it is not seen.
	mayRead(t, c, user, unbound, "configmaps")
	select {
	case got := <-saw:
		t.Fatalf("%+v was reconciled, and its Secrets cannot be read", got)
	case <-time.After(leftOutInterval + time.Second):
	}
	mayRead(t, c, user, unbound, "secrets")
	next("one of which the Role is bound later", seen{object: inUnbound, secrets: 3, all: 2})

	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gone}}); err != nil {
		t.Fatal(err)
	}
	inGone := populate(t, c, gone)
	mayRead(t, c, user, gone, "configmaps", "secrets")
	next("one that comes back", seen{object: inGone, secrets: 3, all: 3})

	// From then on it is as any other. Each namespace has a cache of its own, so that the deletion may be seen after a change
	// that was made after it: the change is made again.
	if err := c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a, Name: "it"}}); err != nil {
		t.Fatal(err)
	}
	change := 0
	eventually(t, "a change in it", func() error {
		change++
		if err := c.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gone, Name: "it"}},
			client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"a":"%d"}}`, change))); err != nil {
			return err
		}
		select {
		case got := <-saw:
			if want := (seen{object: inGone, secrets: 3, all: 2}); got != want {
				return fmt.Errorf("%+v was reconciled, want %+v", got, want)
			}
			return nil
		case <-time.After(time.Second):
			return errors.New("nothing was reconciled")
		}
	})
}

// A manager that can read none of its namespaces is not ready, and works as soon as it can, also if the others never come.
func TestNoNamespaceCanBeRead(t *testing.T) {
	for name, others := range map[string][]string{"one": nil, "one of two": {"never-there"}} {
		t.Run(name, func(t *testing.T) { noNamespaceCanBeRead(t, others) })
	}
}

func noNamespaceCanBeRead(t *testing.T, others []string) {
	server := testkit.Server(t)
	c := newClient(t, server.Config)
	only := server.NewNamespace(t)
	namespaces := slices.Concat(others, []string{only})
	it := populate(t, c, only)
	cfg := rest.CopyConfig(server.Config)
	cfg.Impersonate.UserName = only + "-user"
	saw := make(chan seen, 100)
	address := freeAddress(t)
	start(t, cfg, Options{ProbeAddress: address, Namespaces: namespaces}, reading(saw))
	ready := func() int {
		code, err := get(t, "http://"+address+"/readyz", "")
		if err != nil {
			return 0
		}
		return code
	}
	time.Sleep(3 * time.Second)
	if code := ready(); code == http.StatusOK || len(saw) > 0 {
		t.Errorf("ready: %d, reconciled: %d", code, len(saw))
	}
	mayRead(t, c, cfg.Impersonate.UserName, only, "configmaps", "secrets")
	select {
	case got := <-saw:
		if want := (seen{object: it, secrets: 3, all: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	case <-time.After(90 * time.Second):
		t.Fatal("nothing was reconciled")
	}
	eventually(t, "readyz", func() error {
		if code := ready(); code != http.StatusOK {
			return fmt.Errorf("%d", code)
		}
		return nil
	})
}
