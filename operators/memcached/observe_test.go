package memcached

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/objects"
)

// server is an API server that has the Memcached at this generation.
type server struct {
	client.Reader
	generation int64
}

func (s server) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetGeneration(s.generation)
	return nil
}

// TestOldView: what was written for a later generation is not undone, if there
// is one.
func TestOldView(t *testing.T) {
	mc := aPool(stable)
	for name, tc := range map[string]struct {
		wrote string
		live  int64
		want  bool
	}{
		"of this generation":      {"1", 1, false},
		"of one before":           {"0", 1, false},
		"by 0.0.1":                {"", 1, false},
		"of a later one":          {"2", 2, true},
		"of one that there isn't": {"7", 1, false},
		"not a number":            {"x", 1, false},
	} {
		seen := somethingSeen(aStatefulSet(mc, func(s *appsv1.StatefulSet) { s.Annotations[objects.GenerationAnnotation] = tc.wrote }))
		if err := isCurrent(context.Background(), server{generation: tc.live}, mc, seen); apierrors.IsConflict(err) != tc.want {
			t.Errorf("%s: %v, want a conflict: %v", name, err, tc.want)
		}
	}
	foreign := somethingSeen(aStatefulSet(mc, func(s *appsv1.StatefulSet) {
		s.Annotations[objects.GenerationAnnotation], s.OwnerReferences = "2", nil
	}))
	if err := isCurrent(context.Background(), server{generation: 2}, mc, foreign); err != nil {
		t.Errorf("a StatefulSet with another owner: %v", err)
	}
}

// TestHidden: a workload of the other identity that may be there, and that the cache does
// not show, is looked for; otherwise no request is made for it.
func TestHidden(t *testing.T) {
	ready := func(mc *v1alpha1.Memcached) {
		mc.Status.Conditions = []metav1.Condition{{Type: status.Ready, Status: metav1.ConditionTrue, ObservedGeneration: mc.Generation}}
	}
	edited := func(mc *v1alpha1.Memcached) { mc.Generation++ }
	for name, tc := range map[string]struct {
		mc   *v1alpha1.Memcached
		seen []seenOption
		made bool
		want bool
	}{
		"a new one":                           {mc: aPool(), want: false},
		"a new one with stable servers":       {mc: aPool(stable), want: true},
		"its StatefulSet is made":             {mc: aPool(stable), made: true, want: false},
		"edited, and all is done":             {mc: aPool(edited, ready), made: true, want: false},
		"edited since it was ready":           {mc: aPool(ready, edited), made: true, want: true},
		"taken over, and not done":            {mc: aPool(stable, announced(v1alpha1.Cold, "")), made: true, want: true},
		"edited, and not ready":               {mc: aPool(edited), made: true, want: true},
		"a server of the other identity":      {mc: aPool(ready), made: true, seen: []seenOption{aServer(aPool(stable), 0)}, want: true},
		"one of the other identity is ending": {mc: aPool(ready), made: true, seen: []seenOption{aServer(aPool(stable), 0, ending)}, want: false},
		"a server of its own":                 {mc: aPool(ready, stable), made: true, seen: []seenOption{aServer(aPool(stable), 0)}, want: false},
	} {
		if got := mayBeHidden(tc.mc, somethingSeen(tc.seen...), tc.made); got != tc.want {
			t.Errorf("%s: it is looked for: %v", name, got)
		}
	}
}

// TestUnmounted: a Secret that a server mounts, and that is not there, is known while the server's node cannot prepare it.
func TestUnmounted(t *testing.T) {
	mc := aPool(func(mc *v1alpha1.Memcached) { mc.Spec.Disruption = &v1alpha1.DisruptionSpec{Enabled: new(false)} })
	seen := somethingSeen(aServer(mc, 0, func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "gone"}}})
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}}
	}))
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(&seen.Pods[0]).Build()
	o := &observer{digests: &contents.Digests{}, limits: &limits{}, missing: &firstSeen{}, now: func() time.Time { return noon }}
	got, err := o.observe(t.Context(), loop.ReaderOf(c, seen.Children), mc)
	if want := []pods.Mount{{Kind: objects.SecretKind, Name: "gone"}}; err != nil || !slices.Equal(got.Unmounted, want) {
		t.Errorf("unmounted are %v, want %v (%v)", got.Unmounted, want, err)
	}
}
