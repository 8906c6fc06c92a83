// Package hasty is a toy operator with a flaw: it looks into its cache to see
// whether a pod runs, and starts one under a new name if it sees none.
package hasty

import (
	"context"

	corev1 "k8s.io/api/core/v1"
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
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(order.GetNamespace())); err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		pod := toy.Pod(order)
		pod.Name, pod.GenerateName = "", order.GetName()+"-"
		return c.Create(ctx, pod)
	}
	if pods.Items[0].Status.Phase != corev1.PodSucceeded {
		return nil
	}
	toy.SetDone(order)
	return c.Status().Update(ctx, order)
}
