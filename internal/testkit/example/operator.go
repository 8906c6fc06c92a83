// Package example is a whole operator and its test, to be read before another one
// is written. Its kind is Order: while an Order is worked on it has a receipt, a
// ConfigMap; a pod does the work, once; then status says so, and the receipt goes.
//
// order.go is the API. This file is the operator: what belongs to an Order, what to
// do next, what status says. Everything else is the loop's. stories_test.go tells
// a story, which the sweep plays with the operator dying at every write.
package example

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/kit/status"
)

const name = "example"

// Operator is the example.
var Operator = run.Operator{
	Name:        name,
	AddToScheme: AddToScheme,
	Kinds:       []run.Kind{loop.Declare(Kind, func(run.Parts) (orders, error) { return Kind, nil })},
}

type orders = loop.Kind[*Order, loop.Children, *loop.Plan]

// Kind is what the loop has to know about Orders.
var Kind = orders{
	Operator: name,
	Empty:    &Order{},
	Children: []loop.Child[*Order]{
		{Empty: &corev1.ConfigMap{}, Name: receiptName},
		{Empty: &corev1.Pod{}, Name: func(o *Order) string { return o.Name }},
	},
	Writes:     []string{"apply ConfigMap", "create Pod", "delete ConfigMap", "status Order"},
	Observe:    func(_ context.Context, r *loop.Reader, _ *Order) (loop.Children, error) { return r.Children, nil },
	Decide:     decide,
	Summarize:  summarize,
	Conditions: func(o *Order) *[]metav1.Condition { return &o.Status.Conditions },
	Retry:      loop.Backoff{First: 50 * time.Millisecond, Longest: 10 * time.Second},
	Refusals:   loop.Backoff{First: time.Second, Longest: time.Minute},
}

// IsDone says whether status says that the work is done. It stays so.
func IsDone(o *Order) bool { return meta.IsStatusConditionTrue(o.Status.Conditions, status.Ready) }

func receiptName(o *Order) string { return o.Name + "-receipt" }

// decide keeps the receipt until status says that the work is done, so that the operator
// that continues after a crash in between still finds it, and deletes it.
func decide(o *Order, seen loop.Children) (*loop.Plan, error) {
	receipt, pod := loop.The[*corev1.ConfigMap](seen), loop.The[*corev1.Pod](seen)
	next := &loop.Plan{}
	switch {
	case IsDone(o) && receipt.UID != "":
		next.Do(loop.Delete{Object: receipt, Why: "the work is done"})
	case !IsDone(o):
		labels := podtemplate.Labels(name, o.Name)
		next.Do(loop.Apply{Object: receipt, Want: corev1ac.ConfigMap(receiptName(o), o.Namespace).
			WithLabels(labels).WithOwnerReferences(apply.OwnerReference(o, GroupVersion.WithKind("Order")))})
		if pod.UID == "" {
			next.Then = []loop.Write{loop.Create{Object: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, Labels: labels,
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, GroupVersion.WithKind("Order"))}},
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{Name: "work", Image: "example.com/work"}}},
			}}}
		}
	}
	return next, nil
}

// summarize says how far the work is, and what keeps it from being done.
func summarize(o *Order, seen loop.Children, _ *loop.Plan, did loop.Did) {
	conditions := status.Conditions{List: &o.Status.Conditions, Generation: o.Generation}
	switch pod := loop.The[*corev1.Pod](seen); {
	case IsDone(o):
	case did.Failure != nil:
		conditions.MarkReconciling("Failing", did.Failure.Error())
	case pod.Status.Phase == corev1.PodSucceeded:
		conditions.MarkReady("Done", "The pod has done the work")
	case pod.Status.Phase == corev1.PodFailed:
		conditions.MarkStalled("PodFailed", fmt.Sprintf("Pod %q has failed: delete it for another attempt", pod.Name))
	default:
		conditions.MarkReconciling("Working", fmt.Sprintf("Waiting for pod %q to do the work", o.Name))
	}
}
