//go:build e2e

package memcached

import (
	"testing"

	"example.com/fairlead/test/e2e"
)

// TestLeaveMemcached: without its Memcached, the pool runs on.
func TestLeaveMemcached(t *testing.T) {
	ns := e2e.NewNamespace(t)
	e2e.Apply(t, ns, "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: cache}\nspec: {size: 2}\n")
	e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/cache")
	e2e.LeavesByGuide(t, ns, "From a Memcached", "pods")
}
