package at

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/at/starter"
)

// The stories of processes that wait for their instant. What the operator does too late ends a command that has begun.

func processStories() []testkit.Scenario {
	return []testkit.Scenario{
		asProcess(succeeds()), asProcess(editedWhenPrepared()), asProcess(editedWhenItBegins()), asProcess(putOffWhenPrepared()),
		asProcess(suspendedWhenPrepared()), asProcess(removedWhenPrepared()), asProcess(losesItsPreparedPod()), asProcess(losesItsPodWhenItBegins()),
		losesItsProcess(), lacksTheProgram(), editedWhenStuck(), isRefusedEarly(),
	}
}

// asProcess has the At of a story wait as a process.
func asProcess(sc testkit.Scenario) testkit.Scenario {
	sc = preparedAs(sc, "-process", atv1alpha1.PrepareProcess)
	settled, outcome := sc.Settled, sc.Pods
	sc.Settled = func(ctx context.Context, r *testkit.Run) error {
		if settledAs(atv1alpha1.Failed, reasonWithdrawn)(ctx, r) == nil {
			return nil
		}
		return settled(ctx, r)
	}
	sc.Pods = func(pod *corev1.Pod) (o testkit.Outcome) {
		if outcome != nil {
			o = outcome(pod)
		}
		if instant, isProcess := waitsUntil(pod); isProcess {
			o.WaitsUntil, o.WaitsWith = instant, starter.NotBegun
			if isMarked(pod) { // the process finds the mark in its environment
				o.WaitsUntil = instant.Add(time.Hour)
			}
		}
		return o
	}
	return sc
}

// losesItsProcess has a pod that the user deletes, or drains, while it waits.
func losesItsProcess() testkit.Scenario {
	waits := func(ctx context.Context, r *testkit.Run) error {
		pod := podOfStory(r)
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || started(pod) {
			return err
		}
		return errors.New("the process does not wait")
	}
	return asProcess(testkit.Scenario{
		Name:    "is-drained",
		Arrange: arrangedIn(soon),
		Steps:   []testkit.Step{{Name: "delete the pod", When: orOver(waits), Do: deletesPod}},
		Settled: isOver,
		Check:   ranAtMostOnce,
	})
}

// lacksTheProgram has nodes that cannot pull the image of the start program: it runs without.
func lacksTheProgram() testkit.Scenario {
	return asProcess(testkit.Scenario{
		Name: "lacks-the-program",
		Pods: func(pod *corev1.Pod) testkit.Outcome {
			if _, isProcess := waitsUntil(pod); isProcess {
				return testkit.Stuck("ImagePullBackOff")
			}
			return testkit.Succeeds(0)
		},
		Arrange: arrangedIn(3 * soon),
		Settled: orUnknown(atv1alpha1.Done, "Completed"),
		Check:   ranAtMostOnce,
	})
}

// editedWhenStuck has an image that cannot be pulled, which is said before it is due, and corrected.
func editedWhenStuck() testkit.Scenario {
	return asProcess(testkit.Scenario{
		Name: "edited-when-stuck",
		Pods: func(pod *corev1.Pod) testkit.Outcome {
			if pod.Annotations[generationAnnotation] == "1" {
				return testkit.Stuck("ImagePullBackOff")
			}
			return testkit.Succeeds(0)
		},
		Arrange: arrangedIn(soon, spec(func(s *atv1alpha1.AtSpec) { s.PendingDeadlineSeconds = new(int64(600)) })),
		Steps:   []testkit.Step{{Name: "correct the image", When: orOver(whenItBegins), Do: edits(anotherCommand)}},
		Settled: isOver,
		Check:   ranAtMostOnce,
	})
}

// isRefusedEarly has a node that refuses the pod of the process.
func isRefusedEarly() testkit.Scenario {
	return asProcess(testkit.Scenario{
		Name:    "is-refused-early",
		Pods:    func(*corev1.Pod) testkit.Outcome { return testkit.Outcome{Refused: "OutOfcpu", Refusals: 1} },
		Arrange: arrangedIn(soon),
		Settled: orUnknown(atv1alpha1.Done, "Completed"),
		Check:   ranAtMostOnce,
	})
}

// inTime wants a run to be done, and not late.
func inTime(at *atv1alpha1.At) error {
	if at.Status.Phase != atv1alpha1.Done || at.Status.Lateness.Duration > time.Second {
		return fmt.Errorf("%s, %s late: %s", at.Status.Phase, at.Status.Lateness, readyMessage(&at.Status))
	}
	return nil
}

// isDoneFromTheLast wants a run to be done as the last change of the spec has it.
func isDoneFromTheLast(at *atv1alpha1.At) error {
	if at.Generation == 1 || saysTooLate(at) {
		return fmt.Errorf("generation %d, %s", at.Generation, readyMessage(&at.Status))
	}
	return inTime(at)
}
