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

// isForgotten has a command whose end the runtime has not seen: the exit code is not the
// command's, which may have succeeded.
func isForgotten() testkit.Scenario {
	return testkit.Scenario{
		Name:     "is-forgotten",
		EachLate: true,
		Pods:     func(*corev1.Pod) testkit.Outcome { return testkit.Outcome{ExitCode: 255, Reason: "Unknown"} },
		Arrange:  arranged(spec(func(s *atv1alpha1.AtSpec) { s.BackoffLimit = 3 })),
		Settled:  settledAs(atv1alpha1.Failed, "ResultUnknown"),
		Check:    ranOnce(1),
	}
}

// orUnknown holds, too, when the operator was too late to see that the node has refused the pod on its arrival.
func orUnknown(phase atv1alpha1.Phase, reason string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		if settledAs(atv1alpha1.Failed, "ResultUnknown")(ctx, r) == nil {
			return nil
		}
		return settledAs(phase, reason)(ctx, r)
	}
}

// isRefusedByItsNode has a node that refuses two pods: that is no attempt, and there is only one.
func isRefusedByItsNode() testkit.Scenario {
	return testkit.Scenario{
		Name:     "is-refused-by-its-node",
		EachLate: true,
		Pods:     func(*corev1.Pod) testkit.Outcome { return testkit.Outcome{Refused: "OutOfcpu", Refusals: 2} },
		Arrange:  arranged(),
		Settled:  orUnknown(atv1alpha1.Done, "Completed"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			at, err := current(ctx, r)
			if err != nil {
				return err
			}
			if at.Status.Attempts != 1 || at.Status.PodName != "at" {
				return fmt.Errorf("%d attempts, the last one as pod %q, want one as pod at", at.Status.Attempts, at.Status.PodName)
			}
			if at.Status.Phase == atv1alpha1.Failed {
				return ranOnce(0)(ctx, r)
			}
			return ranOnce(1)(ctx, r)
		},
	}
}

// isRefusedForGood has a node that takes no pod until it is too late.
func isRefusedForGood() testkit.Scenario {
	return testkit.Scenario{
		Name:     "is-refused-for-good",
		EachLate: true,
		Repeats:  true,
		Pods:     func(*corev1.Pod) testkit.Outcome { return testkit.Outcome{Refused: "OutOfcpu", Refusals: 1000} },
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			return r.Client.Create(ctx, story(r, spec(func(s *atv1alpha1.AtSpec) { s.PendingDeadlineSeconds = new(int64(3)) })))
		},
		Settled: orUnknown(atv1alpha1.Failed, "PendingDeadlineExceeded"),
		Check:   ranOnce(0),
	}
}
