//go:build e2e

package memcached

import (
	"testing"

	"example.com/fairlead/test/e2e"
)

// TestMemcachedReadyIsServed: whichever way a pool becomes Ready, a client that connects then is answered.
func TestMemcachedReadyIsServed(t *testing.T) {
	for _, identity := range []string{"Stable", "Random"} {
		t.Run(identity, func(t *testing.T) {
			ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
			b := e2e.NewBeliever(t, ns, "memcacheds.v1alpha1.cache.example.com", "cache", "cache", 11211)
			for range e2e.Rounds(t) {
				b.After("it is created", func() {
					e2e.Apply(t, ns, "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: cache}\nspec: {size: 2, image: \"memcached:1.6.18\", identity: "+identity+"}\n")
				}, b.Ready)
				b.After("it has grown", b.Patched(`{"size":3}`), b.Ready)
				b.After("it has another image", b.Patched(`{"image":"memcached:1.6.38"}`), b.Ready)
				deleted, replaced := b.DeletePods("memcached_cr=cache")
				b.After("all pods are deleted", deleted, replaced)
				b.After("it was empty", func() { b.Patched(`{"size":0}`)(); b.Patched(`{"size":1}`)() }, b.Ready)
				deleted, replaced = b.DeleteService()
				b.After("its Service is deleted", deleted, replaced)
				e2e.Kubectl(t, "delete", "memcached", "cache", "-n", ns, "--cascade=foreground")
			}
		})
	}
}
