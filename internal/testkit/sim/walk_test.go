package sim

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

var precise = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)

// samples are objects that are not as they would be read.
func samples() []client.Object {
	return []client.Object{
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{}, CreationTimestamp: metav1.NewTime(precise), OwnerReferences: []metav1.OwnerReference{}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Command: []string{}, Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"memory": resource.MustParse("0.5Gi"), "cpu": resource.MustParse("0.25")},
			}}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "Ready", LastTransitionTime: metav1.NewTime(precise)}}},
		},
		&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}},
		&atv1alpha1.At{
			Spec:   atv1alpha1.AtSpec{Command: new("true"), PodTemplate: &corev1.PodTemplateSpec{}},
			Status: atv1alpha1.AtStatus{StartTime: &metav1.MicroTime{Time: precise}, CompletionTime: &metav1.Time{Time: precise}, Conditions: []metav1.Condition{{LastTransitionTime: metav1.NewTime(precise)}}},
		},
	}
}

// TestDecoded: a copy is made what encoding and decoding it makes of it.
func TestDecoded(t *testing.T) {
	for _, obj := range samples() {
		data, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		want := reflect.New(reflect.TypeOf(obj).Elem()).Interface()
		if err := json.Unmarshal(data, want); err != nil {
			t.Fatal(err)
		}
		got := obj.DeepCopyObject()
		decoded(reflect.ValueOf(got).Elem())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-encoded and decoded +got):\n%s", obj, diff)
		}
	}
}

// TestHashOfTimes: times count by which of them are equal, all else by its value.
func TestHashOfTimes(t *testing.T) {
	sum := func(change func(*atv1alpha1.At)) uint64 {
		at := samples()[2].(*atv1alpha1.At)
		change(at)
		h := newHash()
		h.walk(reflect.ValueOf(at).Elem())
		return h.Sum64()
	}
	same := sum(func(*atv1alpha1.At) {})
	for name, tc := range map[string]struct {
		change func(*atv1alpha1.At)
		equal  bool
	}{
		"all times later": {func(at *atv1alpha1.At) {
			later := precise.Add(time.Hour)
			at.Status.StartTime.Time, at.Status.CompletionTime.Time, at.Status.Conditions[0].LastTransitionTime.Time = later, later, later
		}, true},
		"one time later": {func(at *atv1alpha1.At) { at.Status.CompletionTime.Time = precise.Add(time.Hour) }, false},
		"no time":        {func(at *atv1alpha1.At) { at.Status.CompletionTime = nil }, false},
		"another word":   {func(at *atv1alpha1.At) { at.Spec.Command = new("false") }, false},
	} {
		if (sum(tc.change) == same) != tc.equal {
			t.Errorf("%s: the hash is the same: %v", name, !tc.equal)
		}
	}
}
