package at

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
)

// The stories of Ats whose pod is there before their time, and of what users do in the last
// moment. How late the user is, and the operator, decides whether that is too late.

// soon is when the Ats of these stories are due: they are prepared a second before.
const soon = 4 * time.Second

// arrangedIn makes the story's At, due after a while.
func arrangedIn(d time.Duration, options ...atOption) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		if keptOf(r).prepare == atv1alpha1.PrepareProcess {
			d += 2 * lastCall
		}
		due := spec(func(s *atv1alpha1.AtSpec) { s.Schedule = r.Now().Add(d).UTC().Format(time.RFC3339Nano) })
		return r.Client.Create(ctx, story(r, slices.Concat(options, []atOption{due})...))
	}
}

// preparedAs has the At of a story prepared in a way, which ends the story's name.
func preparedAs(sc testkit.Scenario, end string, prepare atv1alpha1.Preparation) testkit.Scenario {
	arrange := sc.Arrange
	sc.Name += end
	sc.Arrange = func(ctx context.Context, r *testkit.Run) error {
		keptOf(r).prepare = prepare
		return arrange(ctx, r)
	}
	return sc
}

// whenPrepared is time to do something with a prepared At, or too late for that.
var whenPrepared = orDone(settledAs(atv1alpha1.Pending, "Prepared"))

// whenItBegins is when the gate of the story's pod is removed, or later.
func whenItBegins(ctx context.Context, r *testkit.Run) error {
	pod := podOfStory(r)
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	if gateIndex(pod) >= 0 {
		return errors.New("the pod is gated")
	}
	return nil
}

// edits changes the spec, unless the API server refuses that because the run has begun.
func edits(change func(r *testkit.Run) string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		err := r.Client.Patch(ctx, story(r), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+change(r)+`}`)))
		if apierrors.IsInvalid(err) {
			return nil
		}
		return err
	}
}

func anotherCommand(*testkit.Run) string { return `{"command":"echo another"}` }

func saysTooLate(at *atv1alpha1.At) bool {
	return strings.Contains(readyMessage(&at.Status), lateChange)
}

// editedOrTooLate holds at the end: what ran is what the API server has accepted last,
// or status says that it came too late; not both, and not neither.
func editedOrTooLate(ctx context.Context, r *testkit.Run) error {
	at, err := current(ctx, r)
	if err != nil {
		return err
	}
	for _, start := range r.Kubelet.Starts() {
		ran := start.Pod.Annotations[generationAnnotation]
		switch takesEffect := ran == strconv.FormatInt(at.Generation, 10); {
		case !takesEffect && !saysTooLate(at):
			return fmt.Errorf("generation %s ran and not %d, nor does status say that the change came too late, but: %s", ran, at.Generation, readyMessage(&at.Status))
		case takesEffect && saysTooLate(at):
			return fmt.Errorf("generation %s ran, and status says that it came too late", ran)
		}
	}
	return nil
}

func editedOnceOrTooLate(ctx context.Context, r *testkit.Run) error {
	return errors.Join(editedOrTooLate(ctx, r), ranOnce(1)(ctx, r))
}

// ranAtMostOnce holds where something is deleted that may have begun to run.
func ranAtMostOnce(_ context.Context, r *testkit.Run) error {
	if starts := r.Kubelet.Starts(); len(starts) > 1 {
		return fmt.Errorf("%d pods were started", len(starts))
	}
	return nil
}

// editedWhenPrepared has another command in the last moment.
func editedWhenPrepared() testkit.Scenario {
	return testkit.Scenario{
		Name:     "edited-when-prepared",
		EachLate: true,
		Arrange:  arrangedIn(soon),
		Steps:    []testkit.Step{{Name: "change the command", When: whenPrepared, Do: edits(anotherCommand)}},
		Settled:  settledAs(atv1alpha1.Done, "Completed"),
		Check:    editedOnceOrTooLate,
	}
}

const onlyIfLate = "whether the change is refused depends on how fast the operator is"

// editedWhenItBegins has another command a moment later. The first attempt fails: the next one
// is not to be that of the other command.
func editedWhenItBegins() testkit.Scenario {
	return testkit.Scenario{
		Name:     "edited-when-it-begins",
		EachLate: true,
		Without:  map[string]string{"plain": onlyIfLate},
		Pods: func(pod *corev1.Pod) testkit.Outcome {
			if pod.Name == "at" {
				return testkit.Fails(10*time.Millisecond, 3)
			}
			return testkit.Succeeds(0)
		},
		Arrange: arrangedIn(soon, spec(func(s *atv1alpha1.AtSpec) { s.BackoffLimit = 1 })),
		Steps:   []testkit.Step{{Name: "change the command", When: orOver(whenItBegins), Do: edits(anotherCommand)}},
		Settled: isOver,
		Check:   editedOrTooLate,
	}
}

// putOffWhenPrepared is due later, in the last moment.
func putOffWhenPrepared() testkit.Scenario {
	return testkit.Scenario{
		Name:     "put-off-when-prepared",
		EachLate: true,
		Arrange:  arrangedIn(soon),
		Steps: []testkit.Step{{Name: "put it off", When: whenPrepared, Do: edits(func(r *testkit.Run) string {
			return fmt.Sprintf(`{"schedule":%q}`, r.Now().Add(2*soon).UTC().Format(time.RFC3339Nano))
		})}},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check:   editedOnceOrTooLate,
	}
}

// suspendedWhenPrepared is suspended in the last moment, and resumed.
func suspendedWhenPrepared() testkit.Scenario {
	return testkit.Scenario{
		Name:     "suspended-when-prepared",
		EachLate: true,
		Arrange:  arrangedIn(soon),
		Steps: []testkit.Step{
			{Name: "suspend", When: whenPrepared, Do: edits(func(*testkit.Run) string { return `{"suspend":true}` })},
			{Name: "resume", When: orOver(settledAs(atv1alpha1.Pending, "Suspended")), Do: edits(func(*testkit.Run) string { return `{"suspend":false}` })},
		},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check:   editedOnceOrTooLate,
	}
}

// removedWhenPrepared is deleted in the last moment.
func removedWhenPrepared() testkit.Scenario {
	return testkit.Scenario{
		Name:     "removed-when-prepared",
		Without:  map[string]string{removesOwner: noOwnerNoEnd},
		EachLate: true,
		Arrange:  arrangedIn(soon),
		Steps: []testkit.Step{{
			Name: "delete the At", When: whenPrepared,
			Do: func(ctx context.Context, r *testkit.Run) error { return r.Client.Delete(ctx, story(r)) },
		}},
		Settled: func(ctx context.Context, r *testkit.Run) error {
			for _, obj := range []client.Object{story(r), podOfStory(r)} {
				if err := r.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
					return fmt.Errorf("the %T is still there: %w", obj, err)
				}
			}
			return nil
		},
		Check: ranAtMostOnce,
	}
}

// isOver wants the At to be finished, whatever came of it.
func isOver(ctx context.Context, r *testkit.Run) error {
	at, err := current(ctx, r)
	if err == nil && !at.Status.Phase.Finished() {
		err = fmt.Errorf("the At is %s %s", at.Status.Phase, at.Status.Reason)
	}
	return err
}

// deletesPod deletes the story's pod, if it is there.
func deletesPod(ctx context.Context, r *testkit.Run) error {
	return client.IgnoreNotFound(r.Client.Delete(ctx, podOfStory(r)))
}

// losesItsPreparedPod has a pod that the user deletes before its time.
func losesItsPreparedPod() testkit.Scenario {
	return testkit.Scenario{
		Name:     "loses-its-prepared-pod",
		EachLate: true,
		Without:  map[string]string{"plain": "whether the pod is seen to go, or gone, depends on how fast the operator is"},
		Arrange:  arrangedIn(soon),
		Steps:    []testkit.Step{{Name: "delete the pod", When: whenPrepared, Do: deletesPod}},
		Settled:  isOver,
		Check:    ranAtMostOnce,
	}
}

// losesItsPodWhenItBegins has a pod that the user deletes when its gate is removed.
func losesItsPodWhenItBegins() testkit.Scenario {
	return testkit.Scenario{
		Name:     "loses-its-pod-when-it-begins",
		EachLate: true,
		Without:  map[string]string{"plain": onlyIfLate},
		Pods:     func(*corev1.Pod) testkit.Outcome { return testkit.Succeeds(2 * time.Second) },
		Arrange:  arrangedIn(soon),
		Steps:    []testkit.Step{{Name: "delete the pod", When: orOver(whenItBegins), Do: deletesPod}},
		Settled:  isOver,
		Check:    ranAtMostOnce,
	}
}

// orOver holds when the At is finished, too.
func orOver(when func(context.Context, *testkit.Run) error) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		if isOver(ctx, r) == nil {
			return nil
		}
		return when(ctx, r)
	}
}

// hasNoRoomEarly has a quota without room until its time, in a simulation.
func hasNoRoomEarly() testkit.Scenario {
	return testkit.Scenario{
		Name:     "has-no-room-early",
		EachLate: true,
		Without:  map[string]string{"plain": "only a simulation has the quota"},
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			keptOf(r).roomFrom = r.Now().Add(soon)
			return arrangedIn(soon)(ctx, r)
		},
		Admit: func(r *testkit.Run, old, obj client.Object) error {
			if _, isPod := obj.(*corev1.Pod); isPod && old == nil && r.Now().Before(keptOf(r).roomFrom) {
				return apierrors.NewForbidden(corev1.Resource("pods"), obj.GetName(), errors.New("exceeded quota: pods"))
			}
			return nil
		},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check:   ranOnce(1),
	}
}
