package webserver

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
)

// TestUnmounted: a ConfigMap or Secret that a pod mounts, and that is not there, is known while the pod's node cannot
// prepare it.
func TestUnmounted(t *testing.T) {
	ws := aWeb(func(ws *webv1.WebServer) {
		ws.Spec.Service = &webv1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}
		ws.Spec.Disruption = &webv1.DisruptionSpec{Enabled: new(false)}
	})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ws.Namespace, Name: "web-1", Labels: selector(ws)},
		Spec: corev1.PodSpec{NodeName: "n", Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "gone"}}},
		}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}}},
	}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(pod).Build()
	o := &observer{digests: &contents.Digests{}, now: func() time.Time { return noon }}
	got, err := o.observe(t.Context(), loop.ReaderOf(c, loop.NoChildren(children)), ws)
	if want := []pods.Mount{{Kind: configMapKind, Name: "gone"}, {Kind: secretKind, Name: "gone"}}; err != nil || !slices.Equal(got.unmounted, want) {
		t.Errorf("unmounted are %v, want %v (%v)", got.unmounted, want, err)
	}
}
