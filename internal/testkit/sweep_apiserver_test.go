//go:build apiserver

package testkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit/example"
	"example.com/fairlead/internal/testkit/internal/flawed"
)

// tea is the Order of all runs.
func tea(r *Run) *example.Order {
	return &example.Order{ObjectMeta: metav1.ObjectMeta{Name: "tea", Namespace: r.Namespace}}
}

// anOrder is the scenario of all: an order is placed, its pod runs once, status
// says so, and the receipt is gone.
func anOrder() Scenario {
	return Scenario{
		Name:    "order",
		Timeout: 10 * time.Second,
		Pods:    func(*corev1.Pod) Outcome { return Succeeds(20 * time.Millisecond) },
		Arrange: func(ctx context.Context, r *Run) error { return r.Client.Create(ctx, tea(r)) },
		Settled: func(ctx context.Context, r *Run) error {
			order := tea(r)
			if err := r.Client.Get(ctx, client.ObjectKeyFromObject(order), order); err != nil {
				return err
			}
			if !example.IsDone(order) {
				return errors.New("the order is not done")
			}
			return nil
		},
		Check: func(ctx context.Context, r *Run) error {
			receipt := flawed.ReceiptOf(tea(r))
			err := r.Client.Get(ctx, client.ObjectKeyFromObject(receipt), receipt)
			if !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("the receipt is still there"), err)
			}
			if n := len(r.Kubelet.Starts()); n > 1 {
				return fmt.Errorf("%d pods were started, want 1", n)
			}
			return nil
		},
	}
}

// sweepOf is a sweep of an operator with a flaw.
func sweepOf(step flawed.Step) *Sweep {
	return &Sweep{
		Start:  flawed.Start(step),
		Writes: []string{"create configmaps", "create pods", "update orders/status", "delete configmaps"},
		Scheme: flawed.Scheme(),
		Kinds:  []client.Object{&example.Order{}},
		Late:   []string{"orders", "pods"},
	}
}

// soundSweep is one of the operator without.
func soundSweep() *Sweep {
	s := sweepOf(nil)
	s.Writes, s.NameOf = example.Kind.Writes, loop.NameOf
	s.Start = func(ctx context.Context, cfg *rest.Config, namespace string) error {
		mgr, err := run.New(cfg, run.Options{Namespaces: []string{namespace}}, example.Operator)
		if err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
	return s
}

// TestSweepMakesUpForWhatItMissed: on a machine with bad luck no n-th write is
// that of a place; the place is cut all the same.
func TestSweepMakesUpForWhatItMissed(t *testing.T) {
	s := soundSweep()
	sc, v := anOrder(), s.variants()[0]
	res := s.play(t.Context(), s.prepare(t), &sc, v, plan{})
	s.note(t, &sc, v, res, plan{})
	if res.err != nil {
		t.Fatal(res.err)
	}
	gaps := s.seen.gaps()
	if len(gaps) == 0 {
		t.Fatal("nothing is missing after a run in which nobody was killed")
	}
	s.fill(t, gaps)
	if left := s.seen.gaps(); len(left) > 0 {
		t.Errorf("%d of %d cuts are still missing: %v", len(left), len(gaps), left)
	}
}

// found sweeps an operator and returns the explanations of the runs that
// failed, by variant.
func found(t *testing.T, s *Sweep, sc Scenario, variants ...string) map[string][]string {
	t.Helper()
	server := s.prepare(t)
	failures := map[string][]string{}
	for _, v := range s.variants(variants...) {
		s.explore(v, func(p plan) (result, bool) {
			return s.play(t.Context(), server, &sc, v, p), true
		}, func(res result, p plan) {
			s.seen.add(playing{&sc, v}, res, p.cut)
			if res.err != nil {
				name := fmt.Sprintf("%s/%s/%s/%s", t.Name(), sc.Name, v.name, p)
				failures[v.name] = append(failures[v.name], s.explain(name, &sc, v, p, res))
			}
		})
	}
	return failures
}

func TestSweepFindsForgottenWork(t *testing.T) {
	s := sweepOf(flawed.Forgetful)
	failures := found(t, s, anOrder(), "plain", "faults")
	for _, want := range []string{
		"scenario order, variant plain, operator 1 killed after write 3: update orders/status tea (update orders/status)",
		"check: the receipt is still there",
		"-run '^TestSweepFindsForgottenWork$/^order$/^plain$/^write-03-after$'",
	} {
		if !strings.Contains(strings.Join(failures["plain"], "\n"), want) {
			t.Errorf("no failure says %q", want)
		}
	}
	// There may be more: where the machine is slow, the cache of this operator,
	// which remembers nothing, is late in the variant plain, too.
	for _, failure := range failures["plain"] {
		if !strings.Contains(failure, "check: the receipt is still there") {
			t.Errorf("found what is not there:\n%s", failure)
		}
	}
	if len(failures["faults"]) == 0 {
		t.Error("no fault at the deletion was found to leave the receipt")
	}
}

func TestSweepFindsASecondStart(t *testing.T) {
	for variant, step := range map[string]flawed.Step{"late-pods": flawed.Hasty, "twins": flawed.HastyPair()} {
		t.Run(variant, func(t *testing.T) {
			s := sweepOf(step)
			s.Delay = 500 * time.Millisecond // enough for the sweep to make it look again, on a busy machine, too
			failures := found(t, s, anOrder(), variant)[variant]
			if !slices.ContainsFunc(failures, func(f string) bool { return strings.Contains(f, "pods were started, want 1") }) {
				t.Errorf("did not find the second start: %v", failures)
			}
		})
	}
}

func TestSweepFindsAnUnreachedWrite(t *testing.T) {
	s := sweepOf(flawed.Unreached)
	sc := anOrder()
	sc.Check = nil
	if failures := found(t, s, sc, "plain"); len(failures) > 0 {
		t.Errorf("unexpected failures: %v", failures)
	}
	s.Writes = []string{"create configmaps", "delete configmaps"}
	err := s.seen.judge(s.Writes, s.Sometimes)
	expect(t, err, "delete configmaps: no scenario gets there")
	expect(t, err, "update orders/status: not one of the writes that the operator says it has")
	if n := len(strings.Split(err.Error(), "\n")); n != 2 {
		t.Errorf("judge() = %v, want that and no more", err)
	}
}

func TestSweepFindsALie(t *testing.T) {
	s := soundSweep()
	s.Each = func(before, now client.Object) error {
		if before != nil && now.GetAnnotations()["lie"] != "" && example.IsDone(now.(*example.Order)) {
			return errors.New("the order may not be done while it lies")
		}
		return nil
	}
	lie := func(text string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"conditions": text} }
	}
	cases := map[string]struct {
		tell func(*unstructured.Unstructured)
		want string
	}{
		"for a moment":   {lie("none"), "status is not of the usual form"},
		"for the user's": {func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"lie": "yes"}) }, "may not be done while it lies"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sc := anOrder()
			sc.Steps = []Step{{Name: "lie", When: sc.Settled, Do: func(ctx context.Context, r *Run) error {
				order := &unstructured.Unstructured{}
				order.SetGroupVersionKind(example.GroupVersion.WithKind("Order"))
				if err := r.Client.Get(ctx, client.ObjectKeyFromObject(tea(r)), order); err != nil {
					return err
				}
				lying := order.DeepCopy()
				tc.tell(lying)
				return errors.Join(
					r.Client.Patch(ctx, lying.DeepCopy(), client.MergeFrom(order)),
					r.Client.Status().Patch(ctx, lying.DeepCopy(), client.MergeFrom(order)),
					r.Client.Status().Patch(ctx, order.DeepCopy(), client.MergeFrom(lying)))
			}}}
			res := s.play(t.Context(), s.prepare(t), &sc, s.variants("plain")[0], plan{})
			expect(t, res.err, tc.want)
		})
	}
}

func TestSweepFindsAnOperatorThatEnds(t *testing.T) {
	s := soundSweep()
	s.Start = func(context.Context, *rest.Config, string) error { return errors.New("no permission") }
	sc := anOrder()
	res := s.play(t.Context(), s.prepare(t), &sc, s.variants("plain")[0], plan{})
	expect(t, res.err, "operator 1 ended by itself: no permission")
}

func TestSoundOperatorIsSilentWhenIdle(t *testing.T) {
	counter := &Counter{}
	sweep, sc := soundSweep(), anOrder()
	start := sweep.Start
	sweep.Start = func(ctx context.Context, cfg *rest.Config, namespace string) error {
		return start(ctx, counter.Wrap(cfg), namespace)
	}
	settled := sc.Settled
	sc.Settled = func(ctx context.Context, r *Run) error {
		if err := settled(ctx, r); err != nil {
			return err
		}
		return counter.Silence(ctx, time.Second)
	}
	if res := sweep.play(t.Context(), sweep.prepare(t), &sc, sweep.variants("plain")[0], plan{}); res.err != nil {
		t.Error(res.err)
	}
}
