//go:build apiserver

package memcached

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// TestMemcached plans for a pool that has no servers yet; test/e2e/memcached has one that has some.
func TestMemcached(t *testing.T) {
	r := rig.New(t, rig.Below(Command))
	mc := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "sessions"}}
	mc.Spec.Size = new(int32(3))
	r.Stored(mc, func() {})
	file := func(manifest string) string {
		path := filepath.Join(t.TempDir(), "sessions.yaml")
		if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: sessions}\n"
	plan := func(code int, want string, args ...string) {
		t.Helper()
		r.Wants(code, []string{want}, append([]string{"memcached", "plan", "sessions"}, args...)...)
	}
	plan(0, "from 3 to 4 servers: clients look for about 25% of the keys elsewhere if they hash consistently, and for 75% if by the modulus\n", "--size=4")
	plan(0, "from 3 to 0 servers: ", "--size=0")
	plan(0, "no server is changed\n", "--image=memcached:1.6.45")
	plan(0, "from 3 to 2 servers: ", "-f", file(head+"spec: {size: 2}\n"))
	plan(1, "at least one of the flags in the group [filename image version memory size] is required")
	plan(1, "it is no amount of memory", "--memory=much")
	plan(1, "should be greater than or equal to 0", "--size=-1")
	plan(1, "it is Memcached/others, and not memcached/sessions", "-f", file("kind: Memcached\nmetadata: {name: others}\n"))
	plan(1, `unknown field "sise"`, "-f", file(head+"spec: {sise: 2}\n"))
	plan(1, "no such file", "-f", filepath.Join(t.TempDir(), "none"))
	r.Wants(1, []string{`"none" not found`}, "memcached", "plan", "none", "--size=1")

	r.Wants(1, []string{"add --gradually"}, "memcached", "flush", "sessions")
	r.Wants(1, []string{"must be between 0s and 24h"}, "memcached", "flush", "sessions", "--gradually", "--over=48h")
	r.Wants(1, []string{"memcached/sessions has no servers"}, "memcached", "flush", "sessions", "--gradually", "--yes")
	r.Wants(1, []string{"--dry-run=some: must be none, client or server"}, "memcached", "flush", "sessions", "--gradually", "--dry-run=some")
	if err := r.Get(t.Context(), client.ObjectKeyFromObject(mc), mc); err != nil || mc.Generation != 1 {
		t.Errorf("a plan has changed the Memcached: generation %d, %v", mc.Generation, err)
	}
}
