package example

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
)

// stories are what the sweep plays.
func stories() []testkit.Scenario { return []testkit.Scenario{anOrderIsPlaced()} }

// anOrderIsPlaced: the work is done once, and the receipt is gone at the end.
func anOrderIsPlaced() testkit.Scenario {
	tea := func(r *testkit.Run) *Order {
		return &Order{ObjectMeta: metav1.ObjectMeta{Name: "tea", Namespace: r.Namespace}}
	}
	return testkit.Scenario{
		Name: "an-order-is-placed",
		// No pod runs: a kubelet that pretends says what became of each.
		Pods:    func(*corev1.Pod) testkit.Outcome { return testkit.Succeeds(20 * time.Millisecond) },
		Arrange: func(ctx context.Context, r *testkit.Run) error { return r.Client.Create(ctx, tea(r)) },
		Settled: func(ctx context.Context, r *testkit.Run) error {
			order := tea(r)
			if err := r.Client.Get(ctx, client.ObjectKeyFromObject(order), order); err != nil {
				return err
			}
			if !IsDone(order) {
				return errors.New("the order is not done")
			}
			return nil
		},
		Check: func(ctx context.Context, r *testkit.Run) error {
			receipt := &corev1.ConfigMap{}
			err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: receiptName(tea(r))}, receipt)
			if !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("the receipt is still there"), err)
			}
			if n := len(r.Kubelet.Starts()); n != 1 {
				return fmt.Errorf("%d pods were started, want 1", n)
			}
			return nil
		},
	}
}
