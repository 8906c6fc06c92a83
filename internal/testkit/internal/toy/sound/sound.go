// Package sound is the toy operator that survives everything: names are
// locks, and every step looks at what is there, not at what it did.
package sound

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/internal/toy"
)

// Run is the operator.
func Run(ctx context.Context, cfg *rest.Config, namespace string) error {
	return toy.Run(ctx, cfg, namespace, step)
}

func step(ctx context.Context, c client.Client, order *unstructured.Unstructured) error {
	receipt, pod := toy.Receipt(order), toy.Pod(order)
	receiptErr := c.Get(ctx, client.ObjectKeyFromObject(receipt), receipt)

	if toy.IsDone(order) {
		if receiptErr != nil {
			return client.IgnoreNotFound(receiptErr)
		}
		return client.IgnoreNotFound(
			c.Delete(ctx, receipt))
	}
	if apierrors.IsNotFound(receiptErr) {
		return c.Create(ctx, receipt)
	}
	err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	if apierrors.IsNotFound(err) {
		return toy.StartPod(ctx, c, pod)
	}
	if err != nil || pod.Status.Phase != corev1.PodSucceeded {
		return err
	}
	toy.SetDone(order)
	return c.Status().
		Update(ctx, order)
}
