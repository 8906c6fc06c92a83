package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// The namespaces in which the API server refuses pods.
const (
	noQuota    = "bench-quota"
	restricted = "bench-restricted"
)

var burstNamespaces = []string{workload, noQuota, restricted}

// breakages are the ways in which an At can be broken, each done to an At that
// is otherwise sound.
var breakages = []struct {
	reason string // what the operator is to tell
	do     func(*atv1alpha1.At)
}{
	{"PodRefused", func(at *atv1alpha1.At) { // 422
		at.Spec.PodTemplate = template()
		at.Spec.PodTemplate.Spec.Tolerations = []corev1.Toleration{{Operator: "Roughly"}}
	}},
	{"PodConflict", func(*atv1alpha1.At) {}}, // there is a foreign pod of the name
	{"PodRefused", func(at *atv1alpha1.At) { at.Namespace = noQuota }},
	{"PodRefused", func(at *atv1alpha1.At) { // Pod Security
		at.Namespace = restricted
		at.Spec.PodTemplate = template()
		at.Spec.PodTemplate.Spec.HostNetwork = true
	}},
}

// template is a pod template that changes nothing.
func template() *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "command"}}}}
}

// prepareBroken makes the namespaces that refuse pods.
func (b *bench) prepareBroken(ctx context.Context) error {
	if err := b.namespace(ctx, noQuota, nil); err != nil {
		return err
	}
	quota := &corev1.ResourceQuota{}
	quota.Namespace, quota.Name = noQuota, "no-pods"
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if err := b.client.Create(ctx, quota); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return b.namespace(ctx, restricted, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
}

// broken are Ats whose pods cannot be made.
type broken struct{ ats []*atv1alpha1.At }

// createBroken creates n of them, of each kind as many.
func (b *bench) createBroken(ctx context.Context, n int, due time.Time) (broken, error) {
	made := broken{ats: make([]*atv1alpha1.At, n)}
	err := parallel(ctx, n, func(i int) error {
		at := newAt(fmt.Sprintf("broken-%06d", i), due)
		how := breakages[i%len(breakages)]
		how.do(at)
		made.ats[i] = at
		if how.reason == "PodConflict" {
			pod := &corev1.Pod{Spec: template().Spec}
			pod.Namespace, pod.Name = at.Namespace, at.Name
			pod.Spec.Containers[0].Image = "busybox"
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "bench.example.com/never"}}
			if err := b.client.Create(ctx, pod); err != nil {
				return err
			}
		}
		return b.client.Create(ctx, at)
	})
	return made, err
}

// check waits until each broken At tells its trouble: a burst in which they
// were not broken would show nothing.
func (made broken) check(ctx context.Context, b *bench) error {
	for i, at := range made.ats {
		want := breakages[i%len(breakages)].reason
		err := eventually(ctx, 2*time.Minute, fmt.Sprintf("At %s tells %s", at.Name, want), func() (bool, error) {
			err := b.client.Get(ctx, client.ObjectKeyFromObject(at), at)
			return at.Status.Reason == want, err
		})
		if err != nil {
			return fmt.Errorf("%w: it tells %s", err, at.Status.Reason)
		}
	}
	return nil
}
