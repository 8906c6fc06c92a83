//go:build apiserver

package sim

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
)

const (
	// soonIs how long a real garbage collector, and a server's cache, may take; staysFor is how
	// long the former is watched while it has nothing to do.
	soonIs, staysFor = 30 * time.Second, time.Second
)

// soon waits until something holds; where it never does, the table finds it.
func soon(holds func() bool) {
	for end := time.Now().Add(soonIs); !holds() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
}

// TestSameServer plays the table on a real API server: what the simulated one answers is
// believed because this one answers the same.
func TestSameServer(t *testing.T) {
	kubernetes := testkit.Server(t)
	c, err := client.New(kubernetes.Config, client.Options{Scheme: testScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	c = client.WithFieldOwner(c, "test")
	for _, sc := range serverCases() {
		t.Run(strings.ReplaceAll(sc.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			a := &attempt{Context: t.Context(), Client: c, namespace: kubernetes.NewNamespace(t)}
			// look is the object as it is, or as the server's cache has it; nil if it is gone.
			look := func(opts ...client.GetOption) client.Object {
				obj := sc.empty.DeepCopyObject().(client.Object)
				if apierrors.IsNotFound(c.Get(a, client.ObjectKey{Namespace: a.namespace, Name: objectName}, obj, opts...)) {
					return nil
				}
				return obj
			}
			a.collect = func(is func(client.Object) bool) {
				if is == nil {
					time.Sleep(staysFor)
					return
				}
				soon(func() bool { return is(look()) })
			}
			// A deletion begins with what the cache has. If that is from before the pod was bound,
			// its grace period of 0 stays, also when the server has seen that there is a node.
			a.settle = func() {
				soon(func() bool {
					obj := look(&client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}})
					if obj == nil || a.seen == nil {
						return obj == nil && a.seen == nil
					}
					return obj.GetResourceVersion() == a.seen.GetResourceVersion()
				})
			}
			for _, wrong := range a.play(sc, nil) {
				t.Error(wrong)
			}
		})
	}
}
