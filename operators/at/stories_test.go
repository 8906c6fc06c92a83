package at

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/testkit"
)

// stories are those that need nothing of a cluster but Ats and pods, so that a simulated
// one can play them, too.
func stories() []testkit.Scenario {
	return []testkit.Scenario{
		succeeds(), retries(), movedAfterItsPod(), editedAfterItsPod(), outlived(), neverStarts(), startsTheSecondTime(), againByName(), missesItsDeadline(), changedByOthers(),
		outlastsItsDeadline(), losesItsMarks(), isForged(), isForgotten(), isRefusedByItsNode(), isRefusedForGood(), isSpread(),
		editedWhenPrepared(), editedWhenItBegins(), putOffWhenPrepared(), suspendedWhenPrepared(), removedWhenPrepared(), losesItsPreparedPod(), losesItsPodWhenItBegins(), hasNoRoomEarly(),
	}
}

// neverBack holds for every two versions of an At that follow each other: a
// finished At stays finished, a claim is never replaced within an attempt, and
// no attempt is left out.
func neverBack(before, now client.Object) error {
	at := now.(*atv1alpha1.At)
	if at.Status.StartTime != nil && at.Status.StartTime.Before(at.Status.ScheduledTime) {
		return fmt.Errorf("started at %v, scheduled for %v", at.Status.StartTime, at.Status.ScheduledTime)
	}
	if before == nil || before.GetUID() != at.UID {
		return nil
	}
	switch was, is := before.(*atv1alpha1.At).Status, at.Status; {
	case was.Phase.Finished() && (is.Phase != was.Phase || is.PodUID != was.PodUID):
		return fmt.Errorf("finished as %s, then became %s", was.Phase, is.Phase)
	case is.Phase == atv1alpha1.Missed && is.Attempts == 0: // and perhaps claimed before that
		return nil
	case is.Attempts == was.Attempts-1 && is.DiscardedPodUID == was.PodUID && is.PodUID == "" && (is.PendingSince != nil || is.Phase == atv1alpha1.Pending):
		return nil // its node has refused the pod, perhaps after a change that came too late
	case is.Attempts != was.Attempts && is.Attempts != was.Attempts+1:
		return fmt.Errorf("attempts went from %d to %d", was.Attempts, is.Attempts)
	case is.Attempts == was.Attempts && was.PodUID != is.PodUID:
		return fmt.Errorf("attempt %d was claimed for pod %s and then for %s", is.Attempts, was.PodUID, is.PodUID)
	case was.Phase == atv1alpha1.Running && is.Phase == atv1alpha1.Pending:
		return errors.New("went from RUNNING back to PENDING")
	}
	return nil
}

// story is an At called "at" that is due when it is made, and the At that is
// there at the end.
func story(r *testkit.Run, options ...atOption) *atv1alpha1.At {
	at := anAt(spec(func(s *atv1alpha1.AtSpec) { s.Schedule = "2021-09-09T07:05:59Z" }))
	at.Namespace, at.Name, at.UID, at.Generation, at.Status = r.Namespace, "at", "", 0, atv1alpha1.AtStatus{}
	at.Spec.Prepare = keptOf(r).prepare
	for _, option := range options {
		option(at)
	}
	return at
}

func arranged(options ...atOption) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error { return r.Client.Create(ctx, story(r, options...)) }
}

func current(ctx context.Context, r *testkit.Run) (*atv1alpha1.At, error) {
	var at atv1alpha1.At
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "at"}, &at)
	return &at, err
}

func settledAs(phase atv1alpha1.Phase, reason string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		at, err := current(ctx, r)
		if err != nil {
			return err
		}
		if at.Status.Phase != phase || reason != "" && at.Status.Reason != reason {
			return fmt.Errorf("the At is %s %s, want %s %s", at.Status.Phase, at.Status.Reason, phase, reason)
		}
		return nil
	}
}

// orDone holds when the At is done, too: the user may come too late to see more.
func orDone(when func(context.Context, *testkit.Run) error) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		if settledAs(atv1alpha1.Done, "Completed")(ctx, r) == nil {
			return nil
		}
		return when(ctx, r)
	}
}

// What others do to the pod in a simulation.
const (
	removesLabel = "removes the pod's label"
	removesOwner = "removes the pod's owner"

	noOwnerNoEnd = "a pod that has no owner when its At is deleted stays"
)

// ranOnce holds at the end of every story: each attempt's pod was started at
// most once, there were as many as status says, and none that status does not
// announce of.
func ranOnce(attempts int) func(context.Context, *testkit.Run) error {
	return func(_ context.Context, r *testkit.Run) error {
		names := map[string]types.UID{}
		for _, start := range r.Kubelet.Starts() {
			if uid, again := names[start.Pod.Name]; again {
				return fmt.Errorf("pod %s was started twice, as %s and as %s", start.Pod.Name, uid, start.Pod.UID)
			}
			names[start.Pod.Name] = start.Pod.UID
		}
		if len(names) != attempts {
			return fmt.Errorf("%d attempts were started (%v), want %d", len(names), names, attempts)
		}
		return nil
	}
}

// succeeds is the plain story, with the output kept.
func succeeds() testkit.Scenario {
	return testkit.Scenario{
		Name:     "succeeds",
		EachLate: true,
		Pods: func(*corev1.Pod) testkit.Outcome {
			return testkit.Outcome{RunsFor: 20 * time.Millisecond, Log: "hello world\n"}
		},
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			return r.Client.Create(ctx, story(r, spec(func(s *atv1alpha1.AtSpec) {
				s.Schedule = r.Now().Add(300 * time.Millisecond).UTC().Format(time.RFC3339Nano)
				s.OutputBytes = 5
			})))
		},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			at, err := current(ctx, r)
			if err != nil {
				return err
			}
			scheduled, err := scheduledTime(at)
			if err != nil {
				return err
			}
			for _, start := range r.Kubelet.Starts() {
				if start.Time.Before(scheduled) {
					return fmt.Errorf("started at %v, scheduled for %v", start.Time, scheduled)
				}
			}
			if at.Status.Output != "orld\n" {
				return fmt.Errorf("output %q", at.Status.Output)
			}
			return ranOnce(1)(ctx, r)
		},
	}
}

// retries fails twice, and then succeeds.
func retries() testkit.Scenario {
	return testkit.Scenario{
		Name:     "retries",
		EachLate: true,
		Pods: func(pod *corev1.Pod) testkit.Outcome {
			if pod.Name == "at" {
				return testkit.Fails(10*time.Millisecond, 3)
			}
			return testkit.Succeeds(10 * time.Millisecond)
		},
		Arrange: arranged(spec(func(s *atv1alpha1.AtSpec) { s.BackoffLimit = 1 })),
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check:   ranOnce(2),
		// Between two attempts a second passes, because Kubernetes' times have
		// whole seconds.
	}
}

// movedAfterItsPod finds what an operator left that died after it had created
// the pod, while the user put the run off.
func movedAfterItsPod() testkit.Scenario {
	suspended := spec(func(s *atv1alpha1.AtSpec) { s.Suspend = true })
	return testkit.Scenario{
		Name:     "moved-after-its-pod",
		EachLate: true,
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			at := story(r, suspended)
			if err := r.Client.Create(ctx, at); err != nil {
				return err
			}
			return r.Client.Create(ctx, desiredPod(at, atExample.gvk, "at", r.Now()))
		},
		Steps: []testkit.Step{{
			Name: "resume",
			When: func(ctx context.Context, r *testkit.Run) error {
				err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "at"}, &corev1.Pod{})
				if !apierrors.IsNotFound(err) {
					return fmt.Errorf("the pod that must not run is there: %w", err)
				}
				return nil
			},
			Do: func(ctx context.Context, r *testkit.Run) error {
				at := story(r)
				return r.Client.Patch(ctx, at, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`)))
			},
		}},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check:   ranOnce(1),
	}
}

// editedAfterItsPod finds what an operator left that died after it had created
// the pod, while the user changed the command.
func editedAfterItsPod() testkit.Scenario {
	return testkit.Scenario{
		Name:     "edited-after-its-pod",
		EachLate: true,
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			at := story(r, spec(func(s *atv1alpha1.AtSpec) { s.Suspend = true }))
			if err := r.Client.Create(ctx, at); err != nil {
				return err
			}
			if err := r.Client.Create(ctx, desiredPod(at, atExample.gvk, "at", r.Now())); err != nil {
				return err
			}
			return r.Client.Patch(ctx, at, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false,"command":"echo another"}}`)))
		},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			for _, start := range r.Kubelet.Starts() {
				if command := podtemplate.Container(&start.Pod.Spec, commandContainer).Command; !slices.Contains(command, "echo another") {
					return fmt.Errorf("%v ran, not what the spec says", command)
				}
			}
			return ranOnce(1)(ctx, r)
		},
	}
}

const onlyLatePods = "an update fails for ever only where the cache of pods is later than the changes are apart"

// changedByOthers has a pod that another writer keeps changing while it waits for its
// gate, faster than a late cache shows: no update of it gets through.
func changedByOthers() testkit.Scenario {
	key := func(r *testkit.Run) client.ObjectKey { return client.ObjectKey{Namespace: r.Namespace, Name: "at"} }
	return testkit.Scenario{
		Name:     "changed-by-others",
		EachLate: true,
		Without:  map[string]string{"plain": onlyLatePods, "late-all": onlyLatePods, "late-ats": onlyLatePods, "twins": onlyLatePods, "faults": onlyLatePods},
		Arrange:  arranged(),
		Steps: []testkit.Step{{
			Name: "change the pod until it may run",
			When: orDone(func(ctx context.Context, r *testkit.Run) error { return r.Client.Get(ctx, key(r), &corev1.Pod{}) }),
			Do: func(ctx context.Context, r *testkit.Run) error {
				var pod corev1.Pod
				for i := range 500 {
					if err := r.Client.Get(ctx, key(r), &pod); err != nil || gateIndex(&pod) < 0 {
						return client.IgnoreNotFound(err)
					}
					patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"seen":"%d"}}}`, i)
					if err := r.Client.Patch(ctx, &pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
						return client.IgnoreNotFound(err)
					}
				}
				return nil
			},
		}},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check:   ranOnce(1),
	}
}

// outlived has a sidecar that continues, and a time to live.
func outlived() testkit.Scenario {
	return testkit.Scenario{
		Name:     "outlived-and-removed",
		Without:  map[string]string{removesOwner: noOwnerNoEnd},
		EachLate: true,
		Pods:     func(*corev1.Pod) testkit.Outcome { return testkit.Outcome{Outlive: []string{"sidecar"}} },
		Arrange: arranged(spec(func(s *atv1alpha1.AtSpec) {
			s.TTLSecondsAfterFinished = new(int64(2))
			s.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sidecar", Image: "i"}}}}
		})),
		Steps: []testkit.Step{{
			Name: "wait until the sidecar is stopped",
			When: func(ctx context.Context, r *testkit.Run) error {
				var pod corev1.Pod
				if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "at"}, &pod); err != nil {
					if _, gone := current(ctx, r); apierrors.IsNotFound(gone) {
						return nil // removed meanwhile, with its sidecar
					}
					return err
				}
				if pod.Spec.ActiveDeadlineSeconds == nil || *pod.Spec.ActiveDeadlineSeconds != 1 {
					return errors.New("the sidecar is not stopped")
				}
				return nil
			},
			Do: func(context.Context, *testkit.Run) error { return nil },
		}},
		Settled: func(ctx context.Context, r *testkit.Run) error {
			if _, err := current(ctx, r); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the At is still there: %w", err)
			}
			return nil
		},
		Check: ranOnce(1),
	}
}

// againByName deletes an At and makes another one of its name at once.
func againByName() testkit.Scenario {
	return testkit.Scenario{
		Name:     "again-by-name",
		Without:  map[string]string{removesOwner: noOwnerNoEnd},
		EachLate: true,
		Arrange:  arranged(),
		Steps: []testkit.Step{{
			Name: "delete and create",
			When: settledAs(atv1alpha1.Done, ""),
			Do: func(ctx context.Context, r *testkit.Run) error {
				return errors.Join(r.Client.Delete(ctx, story(r)), r.Client.Create(ctx, story(r)))
			},
		}},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			at, err := current(ctx, r)
			if err != nil {
				return err
			}
			n := 0
			for _, start := range r.Kubelet.Starts() {
				if start.Pod.UID == at.Status.PodUID {
					n++
				}
			}
			if n != 1 || len(r.Kubelet.Starts()) != 2 {
				return fmt.Errorf("the second At was started %d times, both together %d times, want 1 and 2", n, len(r.Kubelet.Starts()))
			}
			return nil
		},
	}
}

// missesItsDeadline is too late from the beginning.
func missesItsDeadline() testkit.Scenario {
	return testkit.Scenario{
		Name:     "misses-its-deadline",
		EachLate: true,
		Arrange:  arranged(spec(func(s *atv1alpha1.AtSpec) { s.StartingDeadlineSeconds = new(int64(1)) })),
		Settled:  settledAs(atv1alpha1.Missed, "StartingDeadlineExceeded"),
		Check:    ranOnce(0),
	}
}

// isSpread has a window, and is due at a moment of it that follows from its UID.
func isSpread() testkit.Scenario {
	return testkit.Scenario{
		Name: "is-spread",
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			return r.Client.Create(ctx, story(r, spec(func(s *atv1alpha1.AtSpec) {
				// Long enough that the operator sees it wait, whatever the UID is.
				s.Schedule, s.WindowSeconds = r.Now().Add(5*time.Second).UTC().Format(time.RFC3339Nano), 2
			})))
		},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			at, err := current(ctx, r)
			if err != nil {
				return err
			}
			due, err := scheduledTime(at)
			if err != nil {
				return err
			}
			if got := at.Status.ScheduledTime; got == nil || !got.Time.Equal(ceilMicro(due)) {
				return fmt.Errorf("scheduled for %v, want %v", got, due)
			}
			for _, start := range r.Kubelet.Starts() {
				if start.Time.Before(due) {
					return fmt.Errorf("started at %v, scheduled for %v", start.Time, due)
				}
			}
			return ranOnce(1)(ctx, r)
		},
	}
}
