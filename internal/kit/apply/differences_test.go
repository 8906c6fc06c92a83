package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDifferences(t *testing.T) {
	live := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Labels: map[string]string{"ours": "1", "theirs": "2"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "d"}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				Containers: []corev1.Container{
					{Name: "mesh", Image: "mesh:1"},
					{Name: "server", Image: "nginx:1", Args: []string{"a", "b"}},
				},
			}},
		},
	}
	server := func(fields map[string]any) map[string]any {
		fields["name"] = "server"
		return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{fields}}}}}
	}
	const container = "spec.template.spec.containers[server]"

	cases := map[string]struct {
		want map[string]any
		diff []Change
	}{
		"the same, with another's container and label": {want: server(map[string]any{"image": "nginx:1"})},
		"a label of ours is another one": {
			want: map[string]any{"metadata": map[string]any{"labels": map[string]any{"ours": "0"}}},
			diff: []Change{{"metadata.labels.ours", "1", "0"}},
		},
		"a number":          {want: map[string]any{"spec": map[string]any{"replicas": int64(4)}}, diff: []Change{{"spec.replicas", 3.0, 4.0}}},
		"the same number":   {want: map[string]any{"spec": map[string]any{"replicas": int64(3)}}},
		"the same selector": {want: map[string]any{"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "d"}}}}},
		"another's key in the selector": {
			want: map[string]any{"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{}}}},
			diff: []Change{{"spec.selector", map[string]any{"matchLabels": map[string]any{"app": "d"}}, map[string]any{"matchLabels": map[string]any{}}}},
		},
		"another image":        {want: server(map[string]any{"image": "nginx:2"}), diff: []Change{{container + ".image", "nginx:1", "nginx:2"}}},
		"the order of values":  {want: server(map[string]any{"args": []any{"b", "a"}}), diff: []Change{{container + ".args", []any{"a", "b"}, []any{"b", "a"}}}},
		"empty, and left out":  {want: map[string]any{"spec": map[string]any{"paused": false}}},
		"an empty volume":      {want: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"volumes": []any{map[string]any{"name": "tmp", "emptyDir": map[string]any{}}}}}}}},
		"something not there":  {want: map[string]any{"spec": map[string]any{"minReadySeconds": int64(1)}}, diff: []Change{{"spec.minReadySeconds", nil, 1.0}}},
		"kind and API version": {want: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Differences(tc.want, live)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.diff, got); diff != "" {
				t.Errorf("Differences() (-want +got):\n%s", diff)
			}
		})
	}
}
