package pods

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUnprepared: what a pod mounts and does not exist is said at once, and else what it mounts, once that takes long.
func TestUnprepared(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	volume := func(source corev1.VolumeSource) corev1.Volume { return corev1.Volume{VolumeSource: source} }
	pod := func(options ...func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web-1"},
			Spec: corev1.PodSpec{NodeName: "n", Volumes: []corev1.Volume{
				volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}}),
				volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "maybe", Optional: new(true)}}),
				volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}),
				volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "b"}}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
				}}}),
			}},
			Status: corev1.PodStatus{
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Time{Time: noon}}},
				ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: ContainerCreating}}}},
			},
		}
		for _, option := range options {
			option(pod)
		}
		return pod
	}
	const late = `node "n" has not prepared its volumes or its network since 2026-01-02T12:00:00Z (it mounts ConfigMap "a", PersistentVolumeClaim "data", Secret "b"): kubectl describe pod web-1 says why`
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		missing []Mount
		after   time.Duration
		words   string
		until   time.Duration
	}{
		"not yet":          {pod: pod(), after: time.Second, until: preparedWithin},
		"for too long":     {pod: pod(), after: preparedWithin, words: late},
		"something other":  {pod: pod(), missing: []Mount{{"ConfigMap", "other"}, {"Secret", "maybe"}}, after: time.Hour, words: late},
		"one is missing":   {pod: pod(), missing: []Mount{{"ConfigMap", "a"}}, words: `node "n" cannot mount its volumes: ConfigMap "a" does not exist`},
		"two are missing":  {pod: pod(), missing: []Mount{{"Secret", "b"}, {"ConfigMap", "a"}}, words: `ConfigMap "a" and Secret "b" do not exist`},
		"it is being gone": {pod: pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }), after: time.Hour},
		"it has no node":   {pod: pod(func(p *corev1.Pod) { p.Spec.NodeName = "" }), after: time.Hour},
		"it has ended":     {pod: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), after: time.Hour},
		"it is prepared":   {pod: pod(func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }), after: time.Hour},
		"nobody says":      {pod: pod(func(p *corev1.Pod) { p.Status.Conditions = nil }), after: time.Hour},
		"it runs": {pod: pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}), after: time.Hour},
	} {
		words, until := Unprepared(tc.pod, tc.missing, noon.Add(tc.after))
		if words != tc.words && (tc.words == "" || !strings.HasSuffix(words, tc.words)) {
			t.Errorf("%s: %q, want %q", name, words, tc.words)
		}
		if want := noon.Add(tc.until); tc.until == 0 && !until.IsZero() || tc.until != 0 && !until.Equal(want) {
			t.Errorf("%s: until %s, want %s", name, until, want)
		}
	}
}
