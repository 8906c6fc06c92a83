// Package toy is what the testkit's toy operators share. Their kind is Order:
// an operator makes a receipt (a ConfigMap), runs a pod, says so in the
// status, and takes the receipt away again. One toy is sound; the others have
// a flaw each that the sweep must find.
package toy

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Order is the toys' kind.
var Order = schema.GroupVersionKind{Group: "toy.example.com", Version: "v1", Kind: "Order"}

// Run runs a toy for one namespace until the context ends.
func Run(ctx context.Context, cfg *rest.Config, namespace string,
	step func(context.Context, client.Client, *unstructured.Unstructured) error) error {
	skip := true
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     Scheme(),
		Logger:     log.FromContext(ctx),
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		return err
	}
	c := mgr.GetClient()
	err = ctrl.NewControllerManagedBy(mgr).For(New("")).Owns(&corev1.ConfigMap{}).Owns(&corev1.Pod{}).Complete(
		reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			order := New("")
			if err := c.Get(ctx, req.NamespacedName, order); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return reconcile.Result{}, step(ctx, c, order)
		}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// Scheme has the built-in kinds.
func Scheme() *runtime.Scheme { return clientgoscheme.Scheme }

// New is an empty Order.
func New(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(Order)
	o.SetName(name)
	return o
}

// Receipt is the ConfigMap that an Order has while it is worked on.
func Receipt(order *unstructured.Unstructured) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: order.GetName() + "-receipt", Namespace: order.GetNamespace(), OwnerReferences: ownedBy(order)}}
}

// Pod is the pod that an Order runs.
func Pod(order *unstructured.Unstructured) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: order.GetName(), Namespace: order.GetNamespace(), OwnerReferences: ownedBy(order)},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "work", Image: "example.com/work"}},
		},
	}
}

// StartPod writes, though its name does not say so.
func StartPod(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Create(ctx, pod)
}

// IsDone says whether the status says so.
func IsDone(order *unstructured.Unstructured) bool {
	return meta.IsStatusConditionTrue(conditions(order), "Ready")
}

// SetDone makes the status say so.
func SetDone(order *unstructured.Unstructured) {
	all := conditions(order)
	meta.SetStatusCondition(&all, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue,
		Reason: "Done", Message: "the pod has ended", ObservedGeneration: order.GetGeneration()})
	var list []any
	for i := range all {
		c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&all[i])
		if err != nil {
			panic(err) // a Condition always converts
		}
		list = append(list, c)
	}
	order.Object["status"] = map[string]any{"observedGeneration": order.GetGeneration(), "conditions": list}
}

func conditions(order *unstructured.Unstructured) []metav1.Condition {
	var s struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(order.Object, &s); err != nil {
		return nil
	}
	return s.Status.Conditions
}

func ownedBy(order *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(order, Order)}
}
