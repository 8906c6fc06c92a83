//go:build apiserver

package memcached

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/testkit"
)

// TestLostLabels: a server whose labels are removed becomes a server again, the same pod,
// whether its StatefulSet has released it or not.
func TestLostLabels(t *testing.T) {
	t.Parallel()
	for name, labels := range map[string]string{
		"the operator's": `{"app.kubernetes.io/managed-by":null}`,
		"all":            `{"app.kubernetes.io/managed-by":null,"app":null,"memcached_cr":null,"memcached-operator/identity":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, ctx := newStage(t, behaves), context.Background()
			s.Must(s.Create(ctx, story(s.R, stable, size(2))))
			s.settled("memcached:1.6.18", 2)
			pod, err := read(ctx, s.R, "cache-1", &corev1.Pod{})
			s.Must(err)
			uid := pod.UID
			s.Must(s.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":`+labels+`}}`))))
			s.waitsFor(reasonUnavailable)
			s.settled("memcached:1.6.18", 2)
			s.Eventually(func() error {
				pod, err := read(ctx, s.R, "cache-1", &corev1.Pod{})
				if err == nil && (pod.UID != uid || metav1.GetControllerOf(pod) == nil) {
					err = fmt.Errorf("pod %s, controlled by %v", pod.UID, metav1.GetControllerOf(pod))
				}
				return err
			})
		})
	}
}

// TestPodInTheWay: status names a pod that has a server's name and another owner, and the
// operator does not touch it.
func TestPodInTheWay(t *testing.T) {
	t.Parallel()
	s, ctx := newStage(t, func(pod *corev1.Pod) testkit.Outcome {
		if pod.Labels["theirs"] != "" {
			return testkit.Outcome{Forever: true}
		}
		return behaves(pod)
	}), context.Background()
	template := mustTemplate(aPool()).Spec
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "cache-1", Labels: map[string]string{"theirs": "yes"}}, Spec: template}
	s.Must(s.Create(ctx, foreign))
	s.Must(s.Create(ctx, story(s.R, stable, size(2))))
	if ready := s.waitsFor(apply.ReasonConflict); ready.Message != `Pod "cache-1" exists and is not owned by StatefulSet "cache": delete it` {
		t.Errorf("message %q", ready.Message)
	}
	s.Must(s.Delete(ctx, foreign))
	s.settled("memcached:1.6.18", 2)
}
