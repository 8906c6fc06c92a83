package run

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestSilentAtTheStart: an API server that does not answer at first is asked again, and one that never does is no reason
// to leave a namespace out, nor to wait for ever.
func TestSilentAtTheStart(t *testing.T) {
	for name, tc := range map[string]struct {
		silent  int // so often it gives no answer
		leftOut []string
	}{
		"answers": {0, []string{"gone"}}, "answers later": {askedAgain - 1, []string{"gone"}}, "never answers": {1 << 30, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				mapper := meta.NewDefaultRESTMapper(nil)
				mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
				live := interceptor.NewClient(fake.NewClientBuilder().WithRESTMapper(mapper).Build(), interceptor.Funcs{
					List: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, options ...client.ListOption) error {
						requests++
						if requests <= tc.silent {
							return apierrors.NewTimeoutError("etcdserver: request timed out", 1)
						}
						if (&client.ListOptions{}).ApplyOptions(options).Namespace == "gone" {
							return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
						}
						return nil
					},
				})
				n := &namespaces{log: logr.Discard(), live: live, kinds: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Pod")}, told: map[string]bool{}}
				served, leftOut := n.part(t.Context(), []string{"gone", "there"})
				if !slices.Equal(leftOut, tc.leftOut) || !slices.Contains(served, "there") {
					t.Errorf("%v are served and %v left out, want %v left out", served, leftOut, tc.leftOut)
				}
			})
		})
	}
}
