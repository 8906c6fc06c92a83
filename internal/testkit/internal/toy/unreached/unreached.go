// Package unreached is a toy operator with a write that no test gets to, and
// with calls that only look like writes.
package unreached

import (
	"context"

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

type gauge map[string]int

func (g gauge) Delete(label string) { delete(g, label) }

func step(ctx context.Context, c client.Client, order *unstructured.Unstructured) error {
	gauge{}.Delete(order.GetName())
	receipt := toy.Receipt(order)
	if order.GetAnnotations()["refund"] == "yes" {
		return c.Delete(ctx, receipt)
	}
	if toy.IsDone(order) {
		return nil
	}
	if err := c.Create(ctx, receipt); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	toy.SetDone(order)
	return c.Status().Update(ctx, order)
}
