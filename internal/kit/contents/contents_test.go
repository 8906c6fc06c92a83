package contents

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"example.com/fairlead/internal/kit/pods"
)

// TestMissing: only what an unprepared pod mounts is looked for, and only of the kinds that the cache has.
func TestMissing(t *testing.T) {
	pod := func(prepared corev1.ConditionStatus, configMap string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"},
			Spec: corev1.PodSpec{NodeName: "node", Volumes: []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}},
				{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "gone"}}},
			}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: prepared}}},
		}
	}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).
		WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "there"}}).Build()
	all := []corev1.Pod{pod("True", "of one that runs"), pod("False", "there"), pod("False", "gone"), pod("False", "gone")}
	for _, tc := range []struct {
		kinds []string
		want  []pods.Mount
	}{
		{[]string{ConfigMap, Secret}, []pods.Mount{{Kind: Secret, Name: "gone"}, {Kind: ConfigMap, Name: "gone"}}},
		{[]string{Secret}, []pods.Mount{{Kind: Secret, Name: "gone"}}},
	} {
		if got, err := Missing(t.Context(), c, all, tc.kinds...); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("of %v: %v, %v; want %v", tc.kinds, got, err, tc.want)
		}
	}
}
