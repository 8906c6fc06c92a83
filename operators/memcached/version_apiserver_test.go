//go:build apiserver

package memcached

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/pace"
)

// TestDefaultVersionStays: a pool that was created without a version keeps the default of then
// when a later CRD has another one, through edits that do not say a version. The CRD is a copy
// under another name, because other tests use the real one meanwhile.
func TestDefaultVersionStays(t *testing.T) {
	ctx := context.Background()
	text, err := os.ReadFile("config/crd/cache.example.com_memcacheds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := func(version string) *unstructured.Unstructured {
		copied := strings.ReplaceAll(string(text), "cache.example.com", "copy.example.com")
		copied = strings.Replace(copied, "default: 1.6.45\n", "default: "+version+"\n", 1)
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(copied), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	c, err := client.New(testkit.Server(t).Config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	before := crd("1.6.38")
	if err := c.Create(ctx, before); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), before); err != nil {
			t.Error(err)
		}
	})
	namespace := testkit.Server(t).NewNamespace(t)
	pool := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "copy.example.com/v1alpha1", "kind": "Memcached",
			"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{},
		}}
	}
	version := func(u *unstructured.Unstructured) string {
		v, _, _ := unstructured.NestedString(u.Object, "spec", "version")
		return v
	}
	create := func(name, want string) {
		t.Helper()
		n := 0
		if _, err := pace.Until(ctx, 30*time.Second, func() error {
			n++
			u := pool(fmt.Sprint(name, "-", n))
			if err := c.Create(ctx, u); err != nil || version(u) != want {
				return fmt.Errorf("a new pool has version %q, want %q: %w", version(u), want, err)
			}
			return c.Create(ctx, pool(name))
		}); err != nil {
			t.Fatal(err)
		}
	}
	create("old", "1.6.38")
	after := crd("1.6.45")
	if err := c.Patch(ctx, after, client.Merge); err != nil {
		t.Fatal(err)
	}
	create("new", "1.6.45")
	old := pool("old")
	for name, edit := range map[string]func() error{
		"nothing": func() error { return c.Get(ctx, client.ObjectKeyFromObject(old), old) },
		"another size": func() error {
			return c.Patch(ctx, old, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":2}}`)))
		},
		"a server-side apply": func() error {
			applied := pool("old")
			applied.Object["spec"] = map[string]any{"size": int64(3)}
			err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("me"), client.ForceOwnership)
			old = applied
			return err
		},
	} {
		if err := edit(); err != nil || version(old) != "1.6.38" {
			t.Errorf("%s: version %q, want 1.6.38 (%v)", name, version(old), err)
		}
	}
}
