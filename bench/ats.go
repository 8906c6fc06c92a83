package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

const (
	// workload is the namespace that nearly everything happens in.
	workload = "bench"
	// atPrefix starts the names of Ats that are measured, and of their pods.
	atPrefix = "at-"
)

// farOff is a time that does not come.
var farOff = time.Date(2999, 12, 31, 0, 0, 0, 0, time.UTC)

func newAt(name string, due time.Time, options ...func(*atv1alpha1.At)) *atv1alpha1.At {
	at := &atv1alpha1.At{}
	at.Namespace, at.Name = workload, name
	at.Spec.Schedule = due.UTC().Format(time.RFC3339Nano)
	at.Spec.Command = new("echo hello")
	for _, option := range options {
		option(at)
	}
	return at
}

// unscheduled gives the pod to a scheduler that does not exist. The bare client's
// pods stay gated, so the scheduler has nothing to do for them; without this it
// would have, for those of the Ats, and take the API server's time.
func unscheduled(at *atv1alpha1.At) {
	at.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{SchedulerName: "nobody"}}
}

func atName(i int) string { return fmt.Sprintf(atPrefix+"%06d", i) }

// pendingAts creates n Ats with their dues, and waits until the operator has
// said in status that they are scheduled: what follows is about their time, and
// no longer about their creation.
func (b *bench) pendingAts(ctx context.Context, n int, due func(i int) time.Time, options ...func(*atv1alpha1.At)) error {
	ats, err := b.followAts(ctx, workload)
	if err != nil {
		return err
	}
	defer ats.stop()
	if err := parallel(ctx, n, func(i int) error {
		return b.client.Create(ctx, newAt(atName(i), due(i), options...))
	}); err != nil {
		return err
	}
	_, err = ats.wait(ctx, requestPatience, string(atv1alpha1.Pending), n)
	return err
}

// followAts follows Ats through the phases that the operator has told.
func (b *bench) followAts(ctx context.Context, namespace string) (*sightings, error) {
	return b.follow(ctx, &atv1alpha1.AtList{}, namespace, atPrefix, func(obj client.Object) []string {
		if at := obj.(*atv1alpha1.At); at.Status.ObservedGeneration > 0 {
			return []string{string(at.Status.Phase)}
		}
		return nil
	})
}

// clear removes all Ats and pods from namespaces, and waits until they are gone
// and all is quiet.
func (b *bench) clear(ctx context.Context, namespaces ...string) error {
	for _, namespace := range namespaces {
		// The Ats first: an At would tell that its pod was deleted.
		for _, kind := range []struct {
			object client.Object
			list   client.ObjectList
		}{
			{&atv1alpha1.At{}, &atv1alpha1.AtList{}},
			{&corev1.Pod{}, &corev1.PodList{}},
		} {
			err := eventually(ctx, requestPatience, "namespace "+namespace+" is empty", func() (bool, error) {
				if err := b.client.DeleteAllOf(ctx, kind.object, client.InNamespace(namespace),
					client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
					return false, err
				}
				err := b.client.List(ctx, kind.list, client.InNamespace(namespace), client.Limit(1))
				return isEmpty(kind.list), err
			})
			if err != nil {
				return err
			}
		}
	}
	return b.quiet(ctx)
}

func isEmpty(list client.ObjectList) bool {
	switch list := list.(type) {
	case *atv1alpha1.AtList:
		return len(list.Items) == 0
	case *corev1.PodList:
		return len(list.Items) == 0
	}
	panic(fmt.Sprintf("unexpected list %T", list))
}
