//go:build apiserver

package sim

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.Options{CRDs: []string{"../../../operators/at/config/crd", "../../../operators/memcached/config/crd"}})
}

// timeless are managed fields without times, which are the server's, and without
// their order, which is by the times.
func timeless(obj client.Object) map[string]any {
	all := map[string]any{}
	for _, e := range obj.GetManagedFields() {
		var fields any
		if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
			panic(err)
		}
		all[fmt.Sprint(e.Manager, e.Operation, e.Subresource, e.APIVersion, e.Time == nil)] = fields
	}
	return all
}

// TestSameFields writes to a real API server, and compares its managed fields to ours.
func TestSameFields(t *testing.T) {
	server := testkit.Server(t)
	namespace := server.NewNamespace(t)
	scheme := testScheme(t)
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	f := newFields(scheme)
	f.define(definitions(t))

	// written compares after a write of obj, which is what the server answered, with
	// the managed fields that were sent.
	written := func(step string, live, obj client.Object, sent []metav1.ManagedFieldsEntry, subresource string) {
		t.Helper()
		ours := obj.DeepCopyObject().(client.Object)
		ours.SetManagedFields(sent)
		if err := f.update(live, ours, "me", subresource, monday); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if diff := cmp.Diff(timeless(obj), timeless(ours)); diff != "" {
			t.Errorf("%s: managed fields (-server +ours):\n%s", step, diff)
		}
	}
	site, err := convert(manifest(t, deployment), &appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range []client.Object{
		site,
		anAt(),
	} {
		obj.SetNamespace(namespace)
		if err := c.Create(t.Context(), obj, client.FieldOwner("me")); err != nil {
			t.Fatal(err)
		}
		written("create", nil, obj, nil, "")

		live := obj.DeepCopyObject().(client.Object)
		switch o := obj.(type) {
		case *appsv1.Deployment:
			o.Spec.Replicas = new(int32(7))
			o.Spec.Template.Spec.Containers[0].Env = o.Spec.Template.Spec.Containers[0].Env[:1]
		case *atv1alpha1.At:
			o.Spec.Image = "busybox"
		}
		obj.SetFinalizers([]string{"example.com/x"})
		if err := c.Update(t.Context(), obj, client.FieldOwner("me")); err != nil {
			t.Fatal(err)
		}
		written("update", live, obj, live.GetManagedFields(), "")

		live = obj.DeepCopyObject().(client.Object)
		switch o := obj.(type) {
		case *appsv1.Deployment:
			o.Status.ObservedGeneration = 1
		case *atv1alpha1.At:
			o.Status.Phase = atv1alpha1.Running
		}
		if err := c.Status().Update(t.Context(), obj, client.FieldOwner("me")); err != nil {
			t.Fatal(err)
		}
		written("status", live, obj, live.GetManagedFields(), "status")

		live = obj.DeepCopyObject().(client.Object)
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(obj, sets.New("me"), "me")
		if err != nil {
			t.Fatal(err)
		}
		sent := obj.DeepCopyObject().(client.Object)
		if err := csaupgrade.UpgradeManagedFields(sent, sets.New("me"), "me"); err != nil {
			t.Fatal(err)
		}
		if err := c.Patch(t.Context(), obj, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner("me")); err != nil {
			t.Fatal(err)
		}
		written("upgrade", live, obj, sent.GetManagedFields(), "")
	}

	for _, steps := range [][]string{
		{twoPorts, twoPorts, onePort, thirdOne}, {deployment, deployment},
		{`{apiVersion: at.example.com/v1alpha1, kind: At, metadata: {name: a, finalizers: [x/y]}, spec: {schedule: "2031-01-06T08:00:00Z", args: [a], env: [{name: A, value: b}]}}`,
			`{apiVersion: at.example.com/v1alpha1, kind: At, metadata: {name: a}, spec: {schedule: "2031-01-06T08:00:00Z", args: [a], env: [{name: B, value: b}]}}`},
	} {
		var live client.Object
		for i, text := range steps {
			for _, manager := range []string{"me", "you"} {
				u := manifest(t, text)
				u.SetNamespace(namespace)
				u.SetName("applied")
				ours, err := f.apply(live, u, manager, true, monday)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership); err != nil {
					t.Fatal(err)
				}
				theirs, err := f.empty(u.GroupVersionKind())
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), theirs); err != nil {
					t.Fatal(err)
				}
				live = theirs
				if diff := cmp.Diff(timeless(theirs), timeless(ours)); diff != "" {
					t.Errorf("apply %d by %s: managed fields (-server +ours):\n%s", i, manager, diff)
				}
			}
		}
	}
}

// TestSameAdmission writes to a real API server, and compares its answers to ours.
func TestSameAdmission(t *testing.T) {
	server := testkit.Server(t)
	namespace := server.NewNamespace(t)
	scheme := testScheme(t)
	if err := cachev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	all := definitions(t)
	same := func(step string, kind schema.GroupVersionKind, sent, old client.Object, subresource string, write func(client.Object) error) client.Object {
		t.Helper()
		theirs := sent.DeepCopyObject().(client.Object)
		err := write(theirs)
		ours, ourErr := all[kind].admit(sent, old, subresource)
		if err != nil || ourErr != nil {
			if diff := cmp.Diff(err, ourErr); diff != "" {
				t.Errorf("%s: (-server +ours)\n%s", step, diff)
			}
			return nil
		}
		setMeta(ours, theirs)
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("%s: (-server +ours)\n%s", step, diff)
		}
		return theirs
	}
	create := func(obj client.Object) error { return c.Create(t.Context(), obj) }
	update := func(obj client.Object) error { return c.Update(t.Context(), obj) }
	status := func(obj client.Object) error { return c.Status().Update(t.Context(), obj) }

	memcached := cachev1alpha1.GroupVersion.WithKind("Memcached")
	same("memcached", memcached, &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: namespace}}, nil, "", create)
	same("bad memcached", memcached, &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: namespace}, Spec: cachev1alpha1.MemcachedSpec{Port: 70000, Version: "x"}}, nil, "", create)

	kind := atv1alpha1.GroupVersion.WithKind("At")
	here := func(at *atv1alpha1.At) { at.Namespace = namespace }
	same("schedule", kind, anAt(here, func(at *atv1alpha1.At) { at.Spec.Schedule = "tomorrow" }), nil, "", create)
	same("number", kind, anAt(here, func(at *atv1alpha1.At) { at.Spec.BackoffLimit = 101 }), nil, "", create)
	live := same("create", kind, anAt(here, phase("DONE")), nil, "", create).(*atv1alpha1.At)
	next := live.DeepCopy()
	command("true")(next)
	live = same("update", kind, next, live, "", update).(*atv1alpha1.At)
	next = live.DeepCopy()
	phase("DREAMING")(next)
	same("bad status", kind, next, live, "status", status)
	next = live.DeepCopy()
	phase("RUNNING")(next)
	command("false")(next)
	live = same("status", kind, next, live, "status", status).(*atv1alpha1.At)
	next = live.DeepCopy()
	command("false")(next)
	same("late update", kind, next, live, "", update)
}
