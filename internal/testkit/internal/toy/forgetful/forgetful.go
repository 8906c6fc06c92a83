// Package forgetful is a toy operator with a flaw: it says that it is done
// before it has cleaned up, and what is done it never looks at again. If it
// dies in between, the receipt stays.
package forgetful

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
	if toy.IsDone(order) {
		return nil
	}
	receipt, pod := toy.Receipt(order), toy.Pod(order)
	err := c.Get(ctx, client.ObjectKeyFromObject(receipt), receipt)
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, receipt)
	}
	if err != nil {
		return err
	}
	err = c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	if apierrors.IsNotFound(err) {
		return toy.StartPod(ctx, c, pod)
	}
	if err != nil || pod.Status.Phase != corev1.PodSucceeded {
		return err
	}
	toy.SetDone(order)
	if err := c.Status().Update(ctx, order); err != nil {
		return err
	}
	return c.Delete(ctx, receipt)
}
