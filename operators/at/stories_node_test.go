package at

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
)

// The stories of runs whose node is found before their instant. Whatever becomes of the placeholder, the run is what it
// would be without, and none is left.

func nodeStories() []testkit.Scenario {
	return []testkit.Scenario{
		asNode(succeeds()), asNode(editedWhenPrepared()), asNode(putOffWhenPrepared()), asNode(suspendedWhenPrepared()),
		asNode(losesItsPreparedPod()), asNode(hasNoRoomEarly()), losesItsPlaceholder(), lacksRoomForTwo(), cannotBePlaced(),
	}
}

// asNode has the At of a story find a node.
func asNode(sc testkit.Scenario) testkit.Scenario {
	sc = preparedAs(sc, "-node", atv1alpha1.PrepareNode)
	settled, outcome := sc.Settled, sc.Pods
	sc.Settled = func(ctx context.Context, r *testkit.Run) error {
		return errors.Join(settled(ctx, r), noPlaceholder(ctx, r))
	}
	sc.Pods = func(pod *corev1.Pod) (o testkit.Outcome) {
		if outcome != nil {
			o = outcome(pod)
		}
		if isPlaceholder(pod) && o.Waiting == "" {
			o = testkit.Outcome{RunsFor: 2 * time.Second}
		}
		o.StandsIn = isPlaceholder(pod)
		return o
	}
	return sc
}

// noPlaceholder holds when the run has begun.
func noPlaceholder(ctx context.Context, r *testkit.Run) error {
	placeholder, err := placeholderOf(ctx, r)
	if err == nil && placeholder != nil {
		err = fmt.Errorf("placeholder %s is there", placeholder.Name)
	}
	return err
}

// placeholderOf is the one that is there; nil if there is none.
func placeholderOf(ctx context.Context, r *testkit.Run) (*corev1.Pod, error) {
	var all corev1.PodList
	if err := r.Client.List(ctx, &all, client.InNamespace(r.Namespace)); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if isPlaceholder(&all.Items[i]) {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// losesItsPlaceholder has a user who deletes it.
func losesItsPlaceholder() testkit.Scenario {
	isThere := func(ctx context.Context, r *testkit.Run) error {
		placeholder, err := placeholderOf(ctx, r)
		if err == nil && placeholder == nil {
			err = errors.New("there is no placeholder")
		}
		return err
	}
	return asNode(testkit.Scenario{
		Name:    "loses-its-placeholder",
		Arrange: arrangedIn(soon),
		Steps: []testkit.Step{{Name: "delete the placeholder", When: orOver(isThere), Do: func(ctx context.Context, r *testkit.Run) error {
			placeholder, err := placeholderOf(ctx, r)
			if err != nil || placeholder == nil {
				return err
			}
			return client.IgnoreNotFound(r.Client.Delete(ctx, placeholder))
		}}},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check:   ranOnce(1),
	})
}

// lacksRoomForTwo has a quota that is as large as the run.
func lacksRoomForTwo() testkit.Scenario {
	return asNode(testkit.Scenario{
		Name:    "lacks-room-for-two",
		Without: map[string]string{"plain": "only a simulation has the quota"},
		Arrange: arrangedIn(soon),
		Admit: func(_ *testkit.Run, old, obj client.Object) error {
			if pod, isPod := obj.(*corev1.Pod); isPod && old == nil && isPlaceholder(pod) {
				return apierrors.NewForbidden(corev1.Resource("pods"), obj.GetName(), errors.New("exceeded quota: pods"))
			}
			return nil
		},
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check:   ranOnce(1),
	})
}

// cannotBePlaced has an image that is there only when the run is due.
func cannotBePlaced() testkit.Scenario {
	return asNode(testkit.Scenario{
		Name: "cannot-be-placed",
		Pods: func(pod *corev1.Pod) testkit.Outcome {
			if isPlaceholder(pod) {
				return testkit.Stuck("ImagePullBackOff")
			}
			return testkit.Succeeds(0)
		},
		Arrange: arrangedIn(soon),
		Settled: settledAs(atv1alpha1.Done, "Completed"),
		Check:   ranOnce(1),
	})
}
