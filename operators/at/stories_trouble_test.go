package at

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
)

// The stories of pods that do not get to run.

// neverStarts has an image that cannot be pulled.
func neverStarts() testkit.Scenario {
	return testkit.Scenario{
		Name:     "never-starts",
		EachLate: true,
		Pods:     func(*corev1.Pod) testkit.Outcome { return testkit.Stuck("ImagePullBackOff") },
		Arrange:  arranged(spec(func(s *atv1alpha1.AtSpec) { s.PendingDeadlineSeconds = new(int64(1)) })),
		Settled: func(ctx context.Context, r *testkit.Run) error {
			if err := settledAs(atv1alpha1.Failed, "PendingDeadlineExceeded")(ctx, r); err != nil {
				return err
			}
			err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "at"}, &corev1.Pod{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("the pod that cannot start is still there: %w", err)
			}
			return nil
		},
	}
}

// startsTheSecondTime has a first pod that cannot start in time. It must be gone
// before there is another one, or it might start after all.
func startsTheSecondTime() testkit.Scenario {
	first := func(pod *corev1.Pod) bool { return pod.Name == "at" }
	return testkit.Scenario{
		Name: "starts-the-second-time",
		Pods: func(pod *corev1.Pod) testkit.Outcome {
			if first(pod) {
				return testkit.Stuck("ImagePullBackOff")
			}
			return testkit.Succeeds(0)
		},
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			return r.Client.Create(ctx, story(r, spec(func(s *atv1alpha1.AtSpec) { s.PendingDeadlineSeconds, s.BackoffLimit = new(r.Seconds(2)), 1 })))
		},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "at"}, &corev1.Pod{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("the pod of the first attempt is still there: %w", err)
			}
			return nil
		},
		Without: map[string]string{
			"late-all": "being late takes longer than the deadline of the second pod, which could start",
			"faults":   "so does a fault with a wait",
		},
	}
}

// outlastsItsDeadline has a command that says that it succeeded when it gets a signal to
// stop.
func outlastsItsDeadline() testkit.Scenario {
	return testkit.Scenario{
		Name: "outlasts-its-deadline",
		Pods: func(*corev1.Pod) testkit.Outcome { return testkit.Succeeds(10 * 365 * 24 * time.Hour) },
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			return r.Client.Create(ctx, story(r, spec(func(s *atv1alpha1.AtSpec) { s.ActiveDeadlineSeconds, s.BackoffLimit = new(r.Seconds(5)), 3 })))
		},
		Settled: settledAs(atv1alpha1.Failed, "DeadlineExceeded"),
		Check:   ranOnce(1),
		Timeout: 2 * time.Minute,
	}
}
