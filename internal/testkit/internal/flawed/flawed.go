// Package flawed has operators for the kind Order of the package example, written
// without the loop, and with a flaw each that the sweep must find.
package flawed

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit/example"
)

// Step is what an operator does about an Order that is not done.
type Step func(context.Context, client.Client, *example.Order) error

// Forgetful says that it is done before it has cleaned up, and what is done it never
// looks at again. If it dies in between, the receipt stays.
func Forgetful(ctx context.Context, c client.Client, order *example.Order) error {
	receipt, pod := ReceiptOf(order), podOf(order)
	err := c.Get(ctx, client.ObjectKeyFromObject(receipt), receipt)
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, receipt)
	}
	if err != nil {
		return err
	}
	err = c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, pod)
	}
	if err != nil || pod.Status.Phase != corev1.PodSucceeded {
		return err
	}
	if err := done(ctx, c, order); err != nil {
		return err
	}
	return c.Delete(ctx, receipt)
}

// Hasty looks into its cache to see whether a pod runs, and starts one under a new
// name if it sees none.
func Hasty(ctx context.Context, c client.Client, order *example.Order) error {
	return hasty(ctx, c, order, func() {})
}

// HastyPair is Hasty with two leaders that both look before either starts a pod: who has
// looked waits until another has, too, for at most 5 s. Without it, whether they meet
// depends on how long each takes to come up.
func HastyPair() Step {
	var firsts sync.Map // by UID of the Order, what ends the wait of who looked first
	return func(ctx context.Context, c client.Client, order *example.Order) error {
		return hasty(ctx, c, order, func() {
			alone, met := context.WithTimeout(ctx, 5*time.Second)
			defer met()
			if first, isSecond := firsts.LoadOrStore(order.UID, met); isSecond {
				first.(context.CancelFunc)()
				return
			}
			<-alone.Done()
		})
	}
}

func hasty(ctx context.Context, c client.Client, order *example.Order, think func()) error {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(order.Namespace)); err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		think()
		pod := podOf(order)
		pod.Name, pod.GenerateName = "", order.Name+"-"
		return c.Create(ctx, pod)
	}
	if pods.Items[0].Status.Phase != corev1.PodSucceeded {
		return nil
	}
	return done(ctx, c, order)
}

// Unreached has a write that no test gets to.
func Unreached(ctx context.Context, c client.Client, order *example.Order) error {
	receipt := ReceiptOf(order)
	if order.Annotations["refund"] == "yes" {
		return c.Delete(ctx, receipt)
	}
	if err := c.Create(ctx, receipt); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return done(ctx, c, order)
}

// Start is for Sweep.Start.
func Start(step Step) func(ctx context.Context, cfg *rest.Config, namespace string) error {
	return func(ctx context.Context, cfg *rest.Config, namespace string) error {
		skip := true
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{
			Scheme:     Scheme(),
			Logger:     log.FromContext(ctx),
			Metrics:    server.Options{BindAddress: "0"},
			Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
			Controller: config.Controller{SkipNameValidation: &skip},
		})
		if err != nil {
			return err
		}
		c := mgr.GetClient()
		err = ctrl.NewControllerManagedBy(mgr).For(&example.Order{}).Owns(&corev1.ConfigMap{}).Owns(&corev1.Pod{}).Complete(
			reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				var order example.Order
				if err := c.Get(ctx, req.NamespacedName, &order); err != nil || example.IsDone(&order) {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				return reconcile.Result{}, step(ctx, c, &order)
			}))
		if err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

// Scheme has the built-in kinds, and Order.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), example.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	return scheme
}

func done(ctx context.Context, c client.Client, order *example.Order) error {
	status.Conditions{List: &order.Status.Conditions, Generation: order.Generation}.MarkReady("Done", "The pod has ended")
	return c.Status().Update(ctx, order)
}

// ReceiptOf is the receipt of an Order.
func ReceiptOf(order *example.Order) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: order.Name + "-receipt", Namespace: order.Namespace, OwnerReferences: ownedBy(order)}}
}

func podOf(order *example.Order) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: order.Name, Namespace: order.Namespace, OwnerReferences: ownedBy(order)},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "work", Image: "example.com/work"}},
		},
	}
}

func ownedBy(order *example.Order) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(order, example.GroupVersion.WithKind("Order"))}
}
