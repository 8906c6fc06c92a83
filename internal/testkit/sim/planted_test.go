package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/example"
)

// tea is the order of all stories.
func tea(r *testkit.Run) *example.Order {
	return &example.Order{ObjectMeta: metav1.ObjectMeta{Name: "tea", Namespace: r.Namespace, Annotations: map[string]string{drink: "green"}}}
}

// story is one in which somebody orders a tea, and something becomes of its pod.
func story(name string, becomes testkit.Outcome, steps ...testkit.Step) testkit.Scenario {
	return testkit.Scenario{
		Name:    name,
		Pods:    func(*corev1.Pod) testkit.Outcome { return becomes },
		Arrange: func(ctx context.Context, r *testkit.Run) error { return r.Client.Create(ctx, tea(r)) },
		Steps:   steps,
		Settled: func(ctx context.Context, r *testkit.Run) error {
			order := tea(r)
			if err := r.Client.Get(ctx, client.ObjectKeyFromObject(order), order); err != nil {
				return err
			}
			if !isSettled(order) {
				return errors.New("the order is not over")
			}
			return nil
		},
		Check: func(ctx context.Context, r *testkit.Run) error {
			var pods corev1.PodList
			if err := r.Client.List(ctx, &pods, client.InNamespace(r.Namespace)); err != nil {
				return err
			}
			return servedOnce(pods.Items, len(r.Kubelet.Starts()))
		},
	}
}

// anotherDrink: who has ordered a green tea prefers a black one, while there is a pod.
func anotherDrink() testkit.Scenario {
	sc := story("another-drink", testkit.Succeeds(20*time.Millisecond), testkit.Step{
		Name: "a black one, please",
		When: func(ctx context.Context, r *testkit.Run) error {
			return r.Client.Get(ctx, client.ObjectKeyFromObject(tea(r)), &corev1.Pod{})
		},
		Do: func(ctx context.Context, r *testkit.Run) error {
			return r.Client.Patch(ctx, tea(r), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"drink":"black"}}}`)))
		},
	})
	sc.Check = func(ctx context.Context, r *testkit.Run) error {
		order := tea(r)
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(order), order); err != nil {
			return err
		}
		for _, c := range order.Status.Conditions {
			if c.Type == status.Stalled && c.Reason == "Lost" {
				return errors.New("nobody but the operator deletes pods, and it says: " + c.Message)
			}
		}
		return nil
	}
	return sc
}

// somebodyDeletesThePod may happen at any time.
func somebodyDeletesThePod() testkit.Step {
	return testkit.Step{Name: "deletes the pod", Do: func(ctx context.Context, r *testkit.Run) error {
		return r.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tea", Namespace: r.Namespace}})
	}}
}

// noReadyWithoutReceipt is what status must never say, also not for a moment.
func noReadyWithoutReceipt(c Change, r *testkit.Run) error {
	order, ok := c.New.(*example.Order)
	if !ok || !example.IsDone(order) {
		return nil
	}
	if r.Client.Get(context.Background(), client.ObjectKey{Namespace: order.Namespace, Name: order.Name + "-receipt"}, &corev1.ConfigMap{}) != nil {
		return errors.New("status says that there is a receipt, and there is none")
	}
	return nil
}

// planted are flaws that the simulation must find.
var planted = []struct {
	flaw
	what     string // is wrong
	story    testkit.Scenario
	meddling []testkit.Step
	// within are the histories that it may take, besides those with a single deviation,
	// and says is a part of what is found.
	within int
	says   string
}{
	{writeBeforeClaim, "the pod runs before status says which one it is: a crash in between, and a node that loses the pod, and the next operator makes another",
		story("tea", testkit.Succeeds(20*time.Millisecond)), []testkit.Step{somebodyDeletesThePod()}, 5000, "the work was started 2 times"},
	{staleList, "a cache that is late shows no pod, and so there is to be one more",
		story("tea", testkit.Succeeds(20*time.Millisecond)), nil, 1000, "there are 2 pods"},
	{missingPrecondition, "a deletion that is late hits the next pod of the same name",
		anotherDrink(), nil, 5000, "nobody but the operator deletes pods"},
	{forgottenWakeUp, "only the process that has started a pod looks at it again; none does if it dies",
		story("a-pod-that-never-starts", testkit.Stuck("ImagePullBackOff")), nil, 1000, "nothing more happens: the order is not over"},
	{statusBeforeWrite, "a receipt that could not be written is said to be there",
		story("tea", testkit.Succeeds(20*time.Millisecond)), nil, 1000, "status says that there is a receipt, and there is none"},
}

// mostDeviations is how many a planted flaw may take, once its history is shrunk.
const mostDeviations = 4

func shopSimulation(f flaw, meddling []testkit.Step) *Simulation {
	return &Simulation{Operator: f.operator(), CRDs: []string{"../example"}, Kinds: []client.Object{&example.Order{}},
		Always: noReadyWithoutReceipt, Meddling: meddling}
}

// TestPlantedFlaws: the simulation finds each, tells it in few deviations, and tells the same
// once more. Without the flaw there is nothing to be found.
func TestPlantedFlaws(t *testing.T) {
	for _, p := range planted {
		t.Run(strings.ReplaceAll(string(p.flaw), " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := shopSimulation(p.flaw, p.meddling)
			f, ok := s.Find(t, p.story, p.within)
			if !ok {
				t.Fatalf("not found within %d histories: %s", p.within, p.what)
			}
			t.Logf("history %d, %d deviations (%s): %v", f.After, len(f.Deviations), f.Deviations, f.Err)
			if !strings.Contains(f.Err.Error(), p.says) || len(f.Deviations) > mostDeviations {
				t.Errorf("want %q, in %d deviations at most; found was:\n%s", p.says, mostDeviations, f)
			}
			var told []string
			again, err := s.replay(f.Replay, []testkit.Scenario{p.story}, func(line string) { told = append(told, line) })
			if err != nil || again.Err == nil || again.Err.Error() != f.Err.Error() || strings.Join(told, "\n") != strings.Join(f.Told, "\n") {
				t.Errorf("REPLAY=%q tells something else: %v, %v\n%s\n\nthan\n%s", f.Replay, err, again.Err, strings.Join(told, "\n"), f)
			}
			if !strings.Contains(f.Command, f.Replay) {
				t.Errorf("the command is %q", f.Command)
			}

			if f, ok := shopSimulation(sound, p.meddling).Find(t, p.story, 300); ok {
				t.Errorf("the shop without the flaw fails, too:\n%s", f)
			}
		})
	}
}
