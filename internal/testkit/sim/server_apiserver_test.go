//go:build apiserver

package sim

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
)

const (
	// collectWithin is how long a real garbage collector may take, and staysFor how long
	// it is watched while it has nothing to do.
	collectWithin, staysFor = 30 * time.Second, time.Second
)

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
			a.collect = func(is func(client.Object) bool) {
				if is == nil {
					time.Sleep(staysFor)
					return
				}
				for end := time.Now().Add(collectWithin); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					obj := sc.empty.DeepCopyObject().(client.Object)
					if apierrors.IsNotFound(c.Get(a, client.ObjectKey{Namespace: a.namespace, Name: objectName}, obj)) {
						obj = nil
					}
					if is(obj) {
						return
					}
				}
			}
			for _, wrong := range a.play(sc, nil) {
				t.Error(wrong)
			}
		})
	}
}
