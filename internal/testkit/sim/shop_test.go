package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	kitpods "example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit/example"
)

// The shop is a toy operator for the kind Order of the package example. It brews what the
// annotation drink says, once: a pod is made with a gate, status claims it, then its gate is
// removed. When the pod has done the work there is a receipt, and then status says Ready. A
// pod that is lost, or has not ended after an hour, is given up.

// flaw is something that is wrong with the shop.
type flaw string

const (
	sound flaw = ""
	// writeBeforeClaim removes the gate of a pod in the step that claims it.
	writeBeforeClaim flaw = "write before claim"
	// staleList looks for pods in a list of the cache, and makes each under a new name. It
	// remembers for a while that it has made one, as many operators do: no other process does.
	staleList flaw = "stale list"
	// missingPrecondition deletes a pod by its name only.
	missingPrecondition flaw = "missing precondition"
	// forgottenWakeUp keeps in memory when to look at a pod again.
	forgottenWakeUp flaw = "forgotten wake-up"
	// statusBeforeWrite says that there is a receipt whatever became of its write.
	statusBeforeWrite flaw = "status before write"
)

const (
	shopName = "shop"
	drink    = "drink"   // the annotation
	claimed  = "Claimed" // the condition; its message is the UID of the pod
	patient  = time.Hour

	claimGate = "example.com/claim"
)

// shop is the shop in one process.
type shop struct {
	flaw
	now   func() time.Time
	wakes map[types.UID]time.Time // of forgottenWakeUp, by pod
	made  map[types.UID]time.Time // of staleList, by Order
}

type (
	shopKind = loop.Kind[*example.Order, shelf, *loop.Plan]
	// shelf is what is observed.
	shelf struct {
		loop.Children
		now time.Time
	}
)

func (s shelf) pod() *corev1.Pod { return loop.The[*corev1.Pod](s.Children) }

// operator is the shop for a run.
func (f flaw) operator() run.Operator {
	static := (&shop{flaw: f}).kind()
	return run.Operator{Name: shopName, AddToScheme: example.AddToScheme, Kinds: []run.Kind{
		loop.Declare(static, func(parts run.Parts) (shopKind, error) {
			return (&shop{flaw: f, now: parts.Now, wakes: map[types.UID]time.Time{}, made: map[types.UID]time.Time{}}).kind(), nil
		}),
	}}
}

func (s *shop) kind() shopKind {
	return shopKind{
		Operator: shopName,
		Empty:    &example.Order{},
		Children: []loop.Child[*example.Order]{
			{Empty: &corev1.ConfigMap{}, Name: func(o *example.Order) string { return o.Name + "-receipt" }},
			{Empty: &corev1.Pod{}, Name: func(o *example.Order) string { return o.Name }},
		},
		Observe:    s.observe,
		Decide:     s.decide,
		Summarize:  s.summarize,
		Conditions: func(o *example.Order) *[]metav1.Condition { return &o.Status.Conditions },
		Retry:      loop.Backoff{First: 50 * time.Millisecond, Longest: 10 * time.Second},
		Refusals:   loop.Backoff{First: time.Second, Longest: time.Minute},
	}
}

func (s *shop) observe(ctx context.Context, r *loop.Reader, o *example.Order) (shelf, error) {
	seen := shelf{r.Children, s.now()}
	if s.flaw == staleList {
		var list corev1.PodList
		if err := r.List(ctx, &list, client.InNamespace(o.Namespace), client.MatchingLabels(podtemplate.Labels(shopName, o.Name))); err != nil {
			return seen, err
		}
		if len(list.Items) > 0 {
			seen.Children = seen.With(&list.Items[0])
		}
		return seen, nil
	}
	if claim := claimOf(o); claim != "" && claim != seen.pod().UID {
		// It would be given up: that is not for a cache to say.
		pod := &corev1.Pod{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(o), pod); client.IgnoreNotFound(err) != nil {
			return seen, err
		}
		seen.Children = seen.With(pod)
	}
	return seen, nil
}

func claimOf(o *example.Order) types.UID {
	if c := meta.FindStatusCondition(o.Status.Conditions, claimed); c != nil {
		return types.UID(c.Message)
	}
	return ""
}

func isSettled(o *example.Order) bool {
	return example.IsDone(o) || meta.IsStatusConditionTrue(o.Status.Conditions, status.Stalled)
}

func (s *shop) decide(o *example.Order, seen shelf) (*loop.Plan, error) {
	pod, claim := seen.pod(), claimOf(o)
	next := &loop.Plan{}
	switch {
	case isSettled(o), claim != "" && claim != pod.UID:
	case pod.UID == "" && s.flaw == staleList && seen.now.Before(s.made[o.UID].Add(time.Minute)):
		next.Wake(s.made[o.UID].Add(time.Minute))
	case pod.UID == "":
		s.made[o.UID] = seen.now
		next.Do(loop.Create{Object: s.brews(o)})
	case claim == "" && pod.DeletionTimestamp != nil: // its end is an event
	case claim == "" && pod.Annotations[drink] != o.Annotations[drink]:
		next.Do(s.deletion(pod))
	case claim == "":
		next.Claim = "claim"
		if s.flaw == writeBeforeClaim {
			next.Do(s.release(pod))
		}
	case len(pod.Spec.SchedulingGates) > 0 && pod.DeletionTimestamp == nil:
		next.Do(s.release(pod))
		s.wake(next, pod)
	case pod.Status.Phase == corev1.PodSucceeded:
		next.Do(loop.Apply{Object: loop.The[*corev1.ConfigMap](seen.Children),
			Want: corev1ac.ConfigMap(o.Name+"-receipt", o.Namespace).WithLabels(podtemplate.Labels(shopName, o.Name)).
				WithOwnerReferences(apply.OwnerReference(o, example.GroupVersion.WithKind("Order")))})
	default:
		s.wake(next, pod)
	}
	return next, nil
}

// brews is the pod of an Order.
func (s *shop) brews(o *example.Order) *corev1.Pod {
	name := o.Name
	if s.flaw == staleList {
		name += "-" + o.ResourceVersion
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: o.Namespace, Labels: podtemplate.Labels(shopName, o.Name),
			Annotations:     map[string]string{drink: o.Annotations[drink]},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, example.GroupVersion.WithKind("Order"))}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			SchedulingGates: []corev1.PodSchedulingGate{{Name: claimGate}},
			Containers:      []corev1.Container{{Name: "work", Image: "example.com/brew"}}},
	}
}

func (s *shop) deletion(pod *corev1.Pod) loop.Write {
	if s.flaw == missingPrecondition {
		return loop.Call{Object: pod, Part: "delete", IfCurrent: true, Do: func(ctx context.Context, c loop.Caller) error {
			return client.IgnoreNotFound(c.Client.Delete(ctx, pod))
		}}
	}
	// Without IfCurrent an operator that does not know of the other drink yet could delete
	// the very pod that another one has claimed. The simulation has found that.
	return loop.Delete{Object: pod, IfCurrent: true, Why: "another drink is wanted"}
}

func (s *shop) release(pod *corev1.Pod) loop.Write {
	return loop.Patch{Object: pod, Part: "gate", Spec: kitpods.Ungated(claimGate), Done: func() { s.wakes[pod.UID] = limit(pod) }}
}

func limit(pod *corev1.Pod) time.Time { return pod.CreationTimestamp.Add(patient) }

func (s *shop) wake(next *loop.Plan, pod *corev1.Pod) {
	at := limit(pod)
	if s.flaw == forgottenWakeUp {
		at = s.wakes[pod.UID]
	}
	if !at.IsZero() {
		next.Wake(at)
	}
}

func (s *shop) summarize(o *example.Order, seen shelf, plan *loop.Plan, did loop.Did) {
	conditions := status.Conditions{List: &o.Status.Conditions, Generation: o.Generation}
	pod, claim := seen.pod(), claimOf(o)
	hasReceipt := loop.The[*corev1.ConfigMap](did.Children).UID != ""
	switch {
	case isSettled(o):
	case hasReceipt, s.flaw == statusBeforeWrite && claim != "" && pod.Status.Phase == corev1.PodSucceeded:
		conditions.MarkReady("Served", "There is a receipt")
	case did.Failure != nil:
		conditions.MarkReconciling("Failing", did.Failure.Error())
	case claim != "" && claim != pod.UID:
		conditions.MarkStalled("Lost", "The pod is gone: whether it did the work is not known")
	case claim != "" && pod.Status.Phase == corev1.PodFailed:
		conditions.MarkStalled("Failed", "The pod has failed")
	case claim != "" && pod.Status.Phase != corev1.PodSucceeded && !seen.now.Before(limit(pod)):
		conditions.MarkStalled("TooLate", "The pod has not ended for an hour")
	default:
		conditions.MarkReconciling("Working", fmt.Sprintf("Waiting for pod %q to do the work", o.Name))
		if plan.Claim != "" {
			conditions.Set(claimed, true, "Claimed", string(pod.UID))
		}
	}
}

// servedOnce is the rule of the shop: what is wrong with its cluster, if anything.
func servedOnce(pods []corev1.Pod, starts int) error {
	var errs []error
	if starts > 1 {
		errs = append(errs, fmt.Errorf("the work was started %d times", starts))
	}
	if len(pods) > 1 {
		slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
		errs = append(errs, fmt.Errorf("there are %d pods, such as %s and %s", len(pods), pods[0].Name, pods[1].Name))
	}
	return errors.Join(errs...)
}
