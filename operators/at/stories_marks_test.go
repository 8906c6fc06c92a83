package at

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
)

// The stories of pods that others make look like another owner's, or like the operator's.

func podOfStory(r *testkit.Run) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "at"}}
}

// stripped removes the marks of the story's pod, unless it is too late for that.
func stripped(marks string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		if settledAs(atv1alpha1.Done, "Completed")(ctx, r) == nil {
			return nil
		}
		return r.Client.Patch(ctx, podOfStory(r), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{`+marks+`}}`)))
	}
}

const (
	noLabel = `"labels":{"app.kubernetes.io/managed-by":null}`
	noOwner = `"ownerReferences":null`
)

// hasItsMarks wants the story's pod to have label and owner.
func hasItsMarks(ctx context.Context, r *testkit.Run) error {
	pod := podOfStory(r)
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	if !isShown(pod) {
		return fmt.Errorf("labels %v", pod.Labels)
	}
	return hasItsOwner(ctx, r)
}

// hasItsOwner wants the story's pod to have its owner: one that is over needs no more.
func hasItsOwner(ctx context.Context, r *testkit.Run) error {
	pod := podOfStory(r)
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	at, err := current(ctx, r)
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(pod, at) {
		return fmt.Errorf("%d owners, and none is the At", len(pod.OwnerReferences))
	}
	return nil
}

func isRunning(ctx context.Context, r *testkit.Run) error {
	pod := podOfStory(r)
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	if !started(pod) {
		return fmt.Errorf("the command has not started")
	}
	return nil
}

const alreadyThere = "that is the story; a pod that is over, and has lost its label, is not seen to lose its owner"

// losesItsMarks has a running pod that loses its label, and then its owner.
func losesItsMarks() testkit.Scenario {
	done := settledAs(atv1alpha1.Done, "Completed")
	return testkit.Scenario{
		Name:    "loses-its-marks",
		Without: map[string]string{removesLabel: alreadyThere, removesOwner: alreadyThere},
		Pods:    func(*corev1.Pod) testkit.Outcome { return testkit.Succeeds(2 * time.Second) },
		Arrange: arranged(),
		Steps: []testkit.Step{
			{Name: "remove the label", When: orDone(isRunning), Do: stripped(noLabel)},
			{Name: "remove the owner", When: orDone(hasItsMarks), Do: stripped(noOwner)},
		},
		Settled: func(ctx context.Context, r *testkit.Run) error {
			if err := done(ctx, r); err != nil {
				return err
			}
			return hasItsOwner(ctx, r)
		},
		Check: ranOnce(1),
		// Marks are restored once in 5 s.
		Timeout: time.Minute,
	}
}

// isForged has a pod of the right name that only says that the At controls it.
func isForged() testkit.Scenario {
	return testkit.Scenario{
		Name: "is-forged",
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			at := story(r, spec(func(s *atv1alpha1.AtSpec) { s.Suspend = true }))
			if err := r.Client.Create(ctx, at); err != nil {
				return err
			}
			pod := podOfStory(r)
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(at, atExample.gvk)}
			pod.Spec = corev1.PodSpec{
				SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/theirs"}}, // it is not to run
				Containers:      []corev1.Container{{Name: "c", Image: "i"}},
			}
			if err := r.Client.Create(ctx, pod); err != nil {
				return err
			}
			return r.Client.Patch(ctx, at, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`)))
		},
		Steps: []testkit.Step{{
			Name: "delete the forged pod",
			When: settledAs(atv1alpha1.Pending, "PodConflict"),
			Do:   func(ctx context.Context, r *testkit.Run) error { return r.Client.Delete(ctx, podOfStory(r)) },
		}},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check:   ranOnce(1),
	}
}
