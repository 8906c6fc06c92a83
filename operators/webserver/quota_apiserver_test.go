//go:build apiserver

package webserver

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/pace"
)

// TestQuota: status reports pods that a quota refuses, in the API server's words. An
// image that already has a ReplicaSet is rolled back, too, when its pods are refused: the
// Deployment's own deadline does not pass for it.
func TestQuota(t *testing.T) {
	t.Parallel()
	s, ctx := newStage(t), context.Background()
	ws := story(s.R)
	ws.Spec.Rollout.DeadlineSeconds = int32(pace.Seconds(5))
	s.Must(s.Create(ctx, ws))
	s.settled(reasonReady, "nginx:1")
	change := func(image string) {
		s.Must(s.Patch(ctx, ws, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"`+image+`"}}`))))
	}
	change("nginx:2")
	s.settled(reasonReady, "nginx:2")

	s.Must(s.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceLimitsCPU: resource.MustParse("1")}},
	}))
	change("nginx:1")
	if ready := s.waitsFor("PodsRefused"); !strings.Contains(ready.Message, "quota") {
		t.Errorf("message %q", ready.Message)
	}
	s.settled(reasonRolledBack, "nginx:2")
}
