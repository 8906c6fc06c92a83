// Package manners writes in every manner that the search for places must see,
// and does what it must not take for a write. Nothing calls it: a comment
// marks the lines.
package manners

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/fairlead/internal/kit/testkit/internal/toy"
)

type deleter interface {
	Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error
}

type gauge struct{}

func (gauge) Delete(string)                  {}
func (gauge) Created(context.Context) string { return "" }

func all(ctx context.Context, c client.Client, cs kubernetes.Interface, r rest.Interface, d deleter, pod *corev1.Pod) {
	_ = c.Create(ctx, pod)                                                     // write
	_ = c.Status().Patch(ctx, pod, client.Merge)                               // write
	_ = c.SubResource("eviction").Create(ctx, pod, pod)                        // write
	_ = c.DeleteAllOf(context.Background(), pod)                               // write
	_ = d.Delete(ctx, pod)                                                     // write
	_ = toy.StartPod(ctx, c, pod)                                              // write
	_, _ = cs.CoreV1().Pods("").UpdateStatus(ctx, pod, metav1.UpdateOptions{}) // write
	_ = r.Post().Resource("pods").Do(ctx)                                      // write
	_, _ = controllerutil.CreateOrUpdate(ctx, c, pod, func() error {           // write
		return c.Delete(ctx, pod) // write
	})

	gauge{}.Delete("")
	gauge{}.Created(ctx)
	_ = c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	_ = r.Get().Resource("pods").Do(ctx)
	_ = toy.IsDone(toy.New(""))
	_, _ = cs.CoreV1().Pods("").Get(ctx, "", metav1.GetOptions{})
}
